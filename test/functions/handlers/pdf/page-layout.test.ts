import { describe, expect, test } from "vitest";
import { layOut, type PdfBlock } from "../../../../functions/handlers/pdf/page-layout.ts";

const text = (body: string): PdfBlock => ({ kind: "text", text: body });
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}`).join("\n");
const place = (title: string, ...blocks: PdfBlock[]) =>
  layOut(title, blocks).pages.map((lines) => lines.map(({ y, runs }) => [y, runs.map((run) => run.text).join("|")]));
const placeBody = (body: string, title = "") => place(title, text(body));
const xs = (...blocks: PdfBlock[]) =>
  layOut("", blocks).pages.flatMap((lines) => lines.map(({ runs }) => runs.map((run) => Math.round(run.x * 10) / 10)));

describe("pages", () => {
  test.each([
    ["43 lines", numbered(43), "", 1],
    ["44 lines", numbered(44), "", 2],
    ["43 lines below a title of one line", numbered(43), "T", 1],
    ["44 lines below a title of one line", numbered(44), "T", 2],
    ["42 lines, three blank lines and one more", `${numbered(42)}\n\n\n\nafter`, "", 2],
    ["two blank lines and one more", " \n \nx", "", 1],
    ["nothing", "", "", 1],
    ["86 lines", numbered(86), "", 2],
    ["87 lines", numbered(87), "", 3],
  ])("%s", (_, body, title, pages) => {
    expect(placeBody(body, title)).toHaveLength(pages);
  });

  test("there is one page where there are no blocks", () => {
    expect(place("")).toEqual([[]]);
  });

  test("a blank line at a page's end is neither lost nor doubled", () => {
    const [first = [], second = []] = placeBody(`${numbered(42)}\n\n\n\nafter`);
    expect(first.at(-1)).toEqual([786 - 42 * 16, ""]);
    expect(second).toEqual([
      [786, ""],
      [770, ""],
      [754, "after"],
    ]);
  });

  test("a title of three lines leaves room for 42", () => {
    const title = `${"W".repeat(28)} ${"W".repeat(28)} W`;
    expect(placeBody(numbered(42), title)).toHaveLength(1);
    expect(placeBody(numbered(43), title)).toHaveLength(2);
  });

  test("a title longer than a page goes on with the next", () => {
    const pages = placeBody("body", "W".repeat(28 * 40));
    expect(pages.flat()).toHaveLength(41);
    expect(pages).toHaveLength(2);
  });
});

describe("a title", () => {
  test("stands at the top, and the text 30 points lower", () => {
    expect(placeBody("body", "Title")).toEqual([
      [
        [786, "Title"],
        [756, "body"],
      ],
    ]);
  });

  test("that is long wraps with 22 points between its lines, and the text never overlaps it", () => {
    expect(placeBody("body", `${"W".repeat(20)} ${"W".repeat(20)}`)[0]?.map(([y]) => y)).toEqual([786, 764, 734]);
  });

  test.each(["", "   ", "\u200b", "\n\t\u00a0\u2003", "\u200d\ufeff"])("%j takes no space", (title) => {
    expect(placeBody("body", title)).toEqual([[[786, "body"]]]);
  });

  test.each(["line1\nline2", " line1 \t\r\n line2 ", "line1\u00a0\u2003line2", "line1\u2028line2", "line1\u001fline2"])(
    "%j has its white space collapsed",
    (title) => {
      expect(placeBody("b", title)[0]?.[0]).toEqual([786, "line1 line2"]);
    },
  );
});

describe("body text", () => {
  test("keeps indentation and runs of spaces, and loses only blanks at the end", () => {
    expect(placeBody("def f():\n    if x:  \n        return  1\nA    B")[0]?.map(([, line]) => line)).toEqual([
      "def f():",
      "    if x:",
      "        return  1",
      "A    B",
    ]);
  });

  test("expands tabs to the next of the stops that are four columns apart", () => {
    expect(placeBody("a\tb\n\tc\nabcd\te\nab\t\tf\n😀\tg")[0]?.map(([, line]) => line)).toEqual([
      "a   b",
      "    c",
      "abcd    e",
      "ab      f",
      "?   g",
    ]);
  });

  test("is wrapped by the widths of its letters and not by their number", () => {
    const lines = (letter: string) => placeBody(letter.repeat(88))[0]?.length;
    expect([lines("i"), lines("n"), lines("W")]).toEqual([1, 2, 2]);
  });

  test("ends with its last line break, which begins no line", () => {
    expect(placeBody("a\n")[0]).toEqual([[786, "a"]]);
    expect(placeBody("a\n\n")[0]).toEqual([
      [786, "a"],
      [770, ""],
    ]);
  });
});

describe("a heading", () => {
  const heading = (label: string): PdfBlock => ({ kind: "heading", text: label });

  test("is one line with a little space above, none of it at the top of a page", () => {
    expect(place("", heading("One\n two"), text("a"), heading("Three"))[0]).toEqual([
      [786, "One two"],
      [770, "a"],
      [748, "Three"],
    ]);
  });

  test("wraps", () => {
    expect(place("", heading("word ".repeat(40)))[0]).toHaveLength(3);
  });

  test("is not left alone at the foot of a page", () => {
    const pages = place("", text(numbered(41)), heading("H"), text("a\nb"));
    expect(pages.map((lines) => lines.length)).toEqual([41, 3]);
  });

  test("that is longer than a page still ends", () => {
    const pages = place("", heading("word ".repeat(2_000)));
    expect(
      pages
        .flat()
        .map(([, line]) => line)
        .join(" ")
        .split(" "),
    ).toHaveLength(2_000);
    expect(pages.length).toBeLessThan(6);
  });
});

describe("a list item", () => {
  const item = (body: string, marker = "•", depth = 0): PdfBlock => ({ kind: "item", text: body, marker, depth });

  test("has its marker before the text and its other lines below the text", () => {
    expect(place("", item("word ".repeat(30)))[0]?.map(([, line]) => String(line).slice(0, 6))).toEqual([
      "\x95|word",
      "word w",
    ]);
    expect(xs(item("word ".repeat(30)))).toEqual([[68.2, 77], [77]]);
  });

  test("is indented by its depth, and a depth without end or sense stays on the page", () => {
    expect(xs(item("a", "•", 1), item("a", "•", 1e9), item("a", "•", -3), item("a", "•", Number.NaN))).toEqual([
      [89.2, 98],
      [236.2, 245],
      [68.2, 77],
      [68.2, 77],
    ]);
  });

  test("lines up numbers of one and two digits, and makes room for three", () => {
    expect(xs(item("a", "9."), item("a", "10."), item("a", "100."))).toEqual([
      [62.8, 77],
      [56.7, 77],
      [56, 82.4],
    ]);
  });

  test("has a marker too wide for the margin in its text", () => {
    expect(place("", item("text", "a marker of many words"))[0]).toEqual([[786, "a marker of many words text"]]);
  });

  test("keeps its line breaks, and its marker where it has no text", () => {
    expect(place("", item("a\nb"), item(""))[0]?.map(([, line]) => line)).toEqual(["\x95|a", "b", "\x95"]);
  });
});

test("replaced characters of title, text, headings, items and markers are counted together", () => {
  const blocks: PdfBlock[] = [
    text("日本"),
    { kind: "heading", text: "→" },
    { kind: "item", text: "😀", marker: "★", depth: 0 },
  ];
  expect(layOut("Łódź", blocks).replacedCharacters).toBe(7);
});
