import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_REPEATED, renderTemplate, toMarkdown, toPlainText } from "../../../functions/handlers/template.ts";
import "../../kit/to-fail.ts";

type Values = Readonly<Record<string, unknown>>;

const fill = (template: string, values: Values) =>
  renderTemplate(template, values, { maxCharacters: 1_000_000 }) ?? expect.unreachable();
const render = (template: string, values: Values) => toMarkdown(fill(template, values)).replace(/\n$/, "");

describe("a value", () => {
  test.each([
    ["$&5 and $$1", "$&5 and $$1"],
    ["$'x", "$'x"],
    ['Tom & Jerry <3 "it\'s"', 'Tom & Jerry <3 "it\'s"'],
    ["{{secret}} {{{secret}}} {{#a}}", "{{secret}} {{{secret}}} {{#a}}"],
    ["a\u0000\u0001b\u0002c", "abc"],
    ["a\nb", "a b"],
    [0, "0"],
    [-1.5, "-1.5"],
    [false, "false"],
    [true, "true"],
    [["a", 1], "a, 1"],
    [{ a: 1 }, ""],
    [null, ""],
    ["\u200b", ""],
  ])("%j stays what it is within a line", (value, text) => {
    expect(render("T: {{x}}.", { x: value, secret: "s", a: true })).toBe(`T: ${text}.`);
  });

  test("keeps its lines in triple braces and loses them in double ones", () => {
    expect(render("{{{x}}}", { x: "a\r\n  b\n\n\n\nc " })).toBe("a\n  b\n\nc");
    expect(render("{{&x}}", { x: "a\nb" })).toBe("a\nb");
    expect(render("{{x}}", { x: "a\r\n  b\n\n\n\nc " })).toBe("a b c");
  });

  test.each([
    ["{{{x}}}", { x: [{ a: 1 }] }],
    ["{{{x}}}", { x: { a: 1 } }],
    ["{{x}}", { x: [{ a: 1 }, [null]] }],
    ["{{#x}}{{{.}}}{{.}}{{/x}}", { x: [[{}], {}, false] }],
  ])("never makes %s fail, whatever it is: %j", (template, values) => {
    expect(() => render(template, values)).not.toThrow();
  });
});

/** What begins a block by itself, each with the place of the backslash that undoes it. */
const FORGERIES = [
  ["# Approved", "\\# Approved"],
  ["###### x", "\\###### x"],
  ["#", "\\#"],
  ["- x", "\\- x"],
  ["+ x", "\\+ x"],
  ["* x", "\\* x"],
  ["1. x", "1\\. x"],
  ["12) x", "12\\) x"],
  ["> x", "\\> x"],
  [">x", "\\>x"],
  ["```", "\\```"],
  ["```js", "\\```js"],
  ["~~~~", "\\~~~~"],
  ["---", "\\---"],
  ["--", "\\--"],
  ["-", "\\-"],
  ["- - -", "\\- - -"],
  ["***", "\\***"],
  ["_ _ _", "\\_ _ _"],
  ["===", "\\==="],
  ["=", "\\="],
  ["+++", "\\+++"],
  ["| a | b |", "\\| a | b |"],
  ["--- | ---", "\\--- | ---"],
  [":-:|:-", "\\:-:|:-"],
  ["<!-- hidden", "\\<!-- hidden"],
  ["<script>", "\\<script>"],
  ["<?php", "\\<?php"],
  ["</pre>", "\\</pre>"],
  ["[a]: http://x.test", "\\[a]: http://x.test"],
  ["[x] done", "\\[x] done"],
] as const;

const INNOCENT = [
  "#hash",
  "-5 degrees",
  "*bold* text",
  "1.5 l",
  "2026-11-30",
  "a # b",
  "__init__",
  "a | b",
  "<b>",
  "[a](b)",
  "==x",
];

describe("a value at the start of a line", () => {
  test.each(FORGERIES)("cannot begin a block with %j", (value, escaped) => {
    expect(render("{{x}}", { x: value })).toBe(escaped);
    expect(render("T\n\n{{{x}}}\n\nend", { x: `text\n${value}\ntext` })).toBe(`T\n\ntext\n${escaped}\ntext\n\nend`);
    expect(render("- {{x}}", { x: value })).toBe(`- ${escaped}`);
    expect(render("> 1. {{x}}", { x: value })).toBe(`> 1. ${escaped}`);
    expect(toPlainText(fill("{{{x}}}", { x: value }))).toBe(`${value}\n`);
  });

  test.each(FORGERIES)("is left alone where it begins none: %j after a word or in a heading", (value) => {
    expect(render("at: {{x}}", { x: value })).toBe(`at: ${value}`);
    expect(render("## {{x}}", { x: value })).toBe(`## ${value}`);
  });

  test.each(INNOCENT)("%j is no block and stays as it is", (value) => {
    expect(render("{{x}}", { x: value })).toBe(value);
    expect(render("- {{{x}}}", { x: value })).toBe(`- ${value}`);
  });

  test("cannot begin a block together with another value or with the template", () => {
    expect(render("{{a}}{{b}}", { a: "1", b: ". x" })).toBe("1\\. x");
    expect(render("{{a}}{{b}}", { a: "``", b: "`" })).toBe("\\```");
    expect(render("1{{b}}", { b: ". x" })).toBe("1\\. x");
    expect(render("#{{b}}", { b: "# x" })).toBe("#\\# x");
  });

  test("may be the number of a list that the template makes", () => {
    expect(render("{{n}}. {{x}}", { n: 3, x: "# y" })).toBe("3. \\# y");
  });

  test("is indented or not, and escaped all the same", () => {
    expect(render("a\n{{{x}}}", { x: "y\n   # z\n\t- w" })).toBe("a\ny\n   \\# z\n\t\\- w");
  });

  test("is never structure, whatever it is", () => {
    const piece = fc.constantFrom(
      "#",
      "-",
      "+",
      "*",
      "1.",
      ">",
      "```",
      "~~~",
      "=",
      "|",
      ":",
      "_",
      " ",
      "\n",
      "\t",
      "a",
      "<!--",
      "[a]:",
    );
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));
    const STRUCTURE =
      /^\s*(?:#{1,6}(?:\s|$)|[-+*](?:\s|$)|\d+[.)](?:\s|$)|>|```|~~~|\||[-:][-:|\s]*$|=+\s*$|(?:[-_*]\s*){3,}$|<!--|\[a\]:)/;
    fc.assert(
      fc.property(text, text, (x, y) => {
        const lines = toMarkdown(fill("Start\n{{{x}}}\n{{y}}{{x}}\nEnd", { x, y })).split("\n");
        expect(lines.filter((line) => STRUCTURE.test(line))).toEqual([]);
      }),
      { numRuns: 3_000 },
    );
  });

  test("takes no time, however long it is", () => {
    const started = performance.now();
    for (const part of ["- ", "> ", "# ", " ", "-  ", "[", "1. ", "| "]) {
      render("{{x}} {{{x}}}", { x: `${part.repeat(100_000)}y` });
    }
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});

describe("names", () => {
  test.each([
    "constructor",
    "toString",
    "__proto__",
    "hasOwnProperty",
    "length",
    "constructor.name",
    "x.length",
    "x.toString",
  ])("%s finds nothing that nobody gave", (name) => {
    expect(render(`[{{${name}}}{{#${name}}}!{{/${name}}}]`, { x: "text" })).toBe("[]");
  });

  test("find what was given under such a name", () => {
    expect(render("{{constructor}} {{toString.length}}", { constructor: "c", toString: { length: "l" } })).toBe("c l");
  });

  test("are looked up in the nearest object and never above it", () => {
    const values = { owner: "the document's", actions: [{ what: "a" }, { what: "b", owner: "Ann" }] };
    expect(render("{{#actions}}{{what}}:{{owner}};{{/actions}}", values)).toBe("a:;b:Ann;");
    expect(render("{{#actions}}{{#owner}}({{owner}}){{/owner}}{{/actions}}", values)).toBe("(Ann)");
    expect(render("{{#a}}{{b.c}}{{x}}{{/a}}", { a: { b: {} }, b: { c: "no" }, x: "no" })).toBe("");
  });

  test("of a text's section still find the text's neighbours", () => {
    expect(render("{{#a}}{{a}}{{b}}{{.}}{{/a}}", { a: "x", b: "y" })).toBe("xyx");
  });
});

describe("sections", () => {
  const TEMPLATE = "T\n{{#x}}\nX: {{x}}\n{{/x}}\n{{^x}}\nnone\n{{/x}}";

  test.each([undefined, null, "", " ", "\u200b", false, []])("vanish for %j", (x) => {
    expect(render(TEMPLATE, { x })).toBe("T\nnone");
  });

  test.each([
    [0, "0"],
    ["0", "0"],
    ["a", "a"],
  ])("stand for %j", (x, text) => {
    expect(render(TEMPLATE, { x })).toBe(`T\nX: ${text}`);
  });

  test("of a list leave out its blank items, and has_ says whether any is left", () => {
    const template = "{{#has_x}}\n## X\n{{#x}}\n- {{.}}\n{{/x}}\n{{/has_x}}\n{{^has_x}}\nnothing\n{{/has_x}}";
    expect(render(template, { x: ["a", " ", "\u200b", null, 0] })).toBe("## X\n- a\n- 0");
    expect(render(template, { x: ["", null], has_x: true })).toBe("nothing");
    expect(render("{{#o}}{{#has_x}}yes{{/has_x}}{{/o}}", { o: [{ x: ["a"] }, { x: [] }] })).toBe("yes");
  });
});

describe("a template", () => {
  test("has no partials, and may set other delimiters", () => {
    expect(render("a{{> x}}b", { x: "no" })).toBe("ab");
    expect(render("{{=<% %>=}}<% x %> {{x}}", { x: "v" })).toBe("v {{x}}");
  });

  test.each(["{{#x}}", "{{/x}}", "{{#x}}{{/y}}", "{{x", "{{=<%}}"])(
    "that is no Mustache makes its tool unavailable: %s",
    (template) => {
      expect(() => fill(template, { x: "v" })).toFail("TOOL_UNAVAILABLE");
    },
  );

  test("that repeats a value beyond all measure is not rendered", () => {
    const rendered = renderTemplate("{{{x}}}".repeat(1_000), { x: "a".repeat(50_000) }, { maxCharacters: 40_000 });
    expect(rendered).toBeUndefined();
  });

  test.each([
    ["a value of very many lines", "{{{x}}}\n".repeat(400), { x: "a\n".repeat(125_000) }],
    ["a value of very many words", "{{x}}\n".repeat(400), { x: "a ".repeat(125_000) }],
    [
      "a long section for a long list",
      `{{#x}}${"l".repeat(60_000)}{{/x}}`,
      { x: Array.from({ length: 60_000 }, () => 1) },
    ],
    [
      "a list within a list",
      "{{#x}}{{#y}}l{{/y}}{{/x}}",
      { x: Array.from({ length: 3_000 }, () => ({ y: Array.from({ length: 300 }, () => 1) })) },
    ],
  ])("that repeats %s gives up instead of filling the memory", (_, template, values) => {
    expect(renderTemplate(template, values, { maxCharacters: 40_000 })).toBeUndefined();
  });

  test("may repeat sections up to the limit and not once more", () => {
    const template = "# T {{#x}}{{/x}}".padEnd(1_000, "-");
    const filled = (times: number) =>
      renderTemplate(template, { x: Array.from({ length: times }, () => 1) }, { maxCharacters: 40_000 });
    expect(filled(MAX_REPEATED / 1_000)).toBeDefined();
    expect(filled(MAX_REPEATED / 1_000 + 1)).toBeUndefined();
  });

  test("may repeat a section for each of a thousand items", () => {
    const items = Array.from({ length: 1_000 }, (_, index) => `item ${index}`);
    expect(render(`# T\n\n{{#x}}\n- {{.}}\n{{/x}}\n${"text ".repeat(100)}`, { x: items })).toContain("- item 999");
  });

  test("keeps its own structure", () => {
    const template = "# {{t}}\n\n> 1. - {{x}}\n\n| a |\n|---|\n| {{x}} |\n";
    expect(render(template, { t: "T", x: "v" })).toBe("# T\n\n> 1. - v\n\n| a |\n|---|\n| v |");
  });
});

test("line ends of a template are line feeds in the document, and its control characters are not there", () => {
  expect(render("# {{t}}\r\n\r\na\u001b[31m{{t}}\r\n", { t: "T" })).toBe("# T\n\na[31mT");
});

test("sections nested beyond what can be rendered make the tool unavailable", () => {
  const template = "{{#a}}".repeat(30_000) + "{{/a}}".repeat(30_000);
  expect(() => renderTemplate(template, { a: true }, { maxCharacters: 1_000 })).toFail("TOOL_UNAVAILABLE");
});
