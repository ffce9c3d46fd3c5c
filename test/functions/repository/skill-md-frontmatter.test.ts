import { describe, expect, test } from "vitest";
import { quoted } from "../../../functions/contract/printable.ts";
import { MAX_FRONTMATTER_BYTES } from "../../../functions/repository/frontmatter.ts";
import { parseSkillMarkdown } from "../../../functions/repository/skill-md.ts";
import { MAX_NESTING } from "../../../functions/repository/yaml-tokens.ts";
import { fileWith, findingsOf, MAX_BYTES, manifestOf, messagesOf, readSkill, validFileWith } from "./read-skill.ts";

const READINGS = ["strict", "lenient"] as const;

function bytesOf(text: string, encoding: BufferEncoding): Uint8Array {
  return Uint8Array.from(Buffer.from(text, encoding));
}

describe("bytes and encoding", () => {
  test("accepts a file at the byte cap and refuses one byte more, naming cap and size", () => {
    const file = new TextEncoder().encode(validFileWith());
    const options = { directoryName: "demo-skill", file: "demo-skill/SKILL.md", reading: "strict" } as const;
    expect(parseSkillMarkdown(file, { ...options, maxBytes: file.length }).ok).toBe(true);
    const refused = parseSkillMarkdown(file, { ...options, maxBytes: file.length - 1 });
    expect(findingsOf(refused)).toEqual(["error 1 file-size"]);
    expect(messagesOf(refused)).toContain(`${file.length} bytes`);
    expect(messagesOf(refused)).toContain(`at most ${file.length - 1}`);
  });

  test("drops a leading byte-order mark, even a doubled one", () => {
    for (const mark of ["\uFEFF", "\uFEFF\uFEFF"]) {
      const result = readSkill(mark + validFileWith());
      expect(findingsOf(result)).toEqual([]);
      expect(JSON.stringify(manifestOf(result))).not.toContain("\uFEFF");
    }
  });

  test.each([
    ["UTF-16 with its mark, little end first", "\uFEFF---\nname: x", "UTF-16"],
    ["UTF-16 without a mark, little end first", "---\nname: x", "UTF-16"],
  ])("names %s", (_, text, encoding) => {
    const little = bytesOf(text, "utf16le");
    const big = Uint8Array.from(Buffer.from(little).swap16());
    for (const bytes of [little, big]) {
      const result = readSkill(bytes, "lenient");
      expect(findingsOf(result)).toEqual(["error 1 encoding"]);
      expect(messagesOf(result)).toContain(encoding);
    }
  });

  test.each([
    ["little end first", [0xff, 0xfe, 0, 0, 0x2d, 0, 0, 0]],
    ["big end first", [0, 0, 0xfe, 0xff, 0, 0, 0, 0x2d]],
  ])("names UTF-32, %s", (_, bytes) => {
    expect(messagesOf(readSkill(Uint8Array.from(bytes)))).toContain("UTF-32");
  });

  test.each([
    ["in the frontmatter", "---\nname: caf\xe9\n", 2],
    ["in the body", "---\nname: demo-skill\ndescription: D.\n---\nR\xe9sum\xe9\n", 5],
    ["in the last line without a line feed", "---\nx\ny \xe9", 3],
  ])("refuses Latin-1 %s with its line", (_, text, line) => {
    expect(findingsOf(readSkill(bytesOf(text, "latin1"), "lenient"))).toEqual([`error ${line} encoding`]);
  });

  test.each([
    ["an encoded surrogate", [0xed, 0xa0, 0x80]],
    ["an overlong slash", [0xc0, 0xaf]],
    ["a truncated sequence", [0xe2, 0x82]],
  ])("refuses %s", (_, bytes) => {
    const file = Uint8Array.from([...new TextEncoder().encode(validFileWith()), ...bytes]);
    expect(findingsOf(readSkill(file))).toEqual(["error 7 encoding"]);
  });

  test.each(READINGS)("refuses NUL in the body with its line, %s", (reading) => {
    const result = readSkill(`${validFileWith()}Price \0/month\n`, reading);
    expect(findingsOf(result)).toEqual(["error 7 control-character"]);
    expect(messagesOf(result)).toContain("NUL");
  });

  test("refuses every control character below the space but tab, line feed and carriage return", () => {
    for (let code = 0; code < 0x20; code += 1) {
      const result = readSkill(`${validFileWith()}a${String.fromCharCode(code)}b\n`);
      expect(result.ok).toBe([0x09, 0x0a, 0x0d].includes(code));
      if (!result.ok) expect(messagesOf(result)).toContain("control");
    }
  });

  test("reports each control character once, and the broken fields with it", () => {
    const result = readSkill(`${validFileWith("extra: 1")}\x01\n\x01\x02\n`);
    expect(findingsOf(result)).toEqual([
      "error 4 unknown-field",
      "error 8 control-character",
      "error 9 control-character",
    ]);
  });

  test("refuses a control character that an escape brings in, in keys, values and unknown fields", () => {
    const result = readSkill(
      validFileWith('license: "a\\0b"', "metadata:", '  "k\\e": v', 'other: ["\\x07"]'),
      "lenient",
    );
    expect(findingsOf(result).filter((finding) => finding.startsWith("error"))).toEqual([
      "error 4 control-character",
      "error 6 control-character",
      "error 7 control-character",
    ]);
  });

  test("refuses half a surrogate pair written as an escape and accepts a whole one", () => {
    expect(findingsOf(readSkill(validFileWith('license: "\\ud83d"'), "lenient"))).toEqual(["error 4 lone-surrogate"]);
    expect(manifestOf(readSkill(validFileWith('license: "\\ud83d\\ude00"'))).license).toBe("\u{1f600}");
  });

  test("warns of an invisible character in a value, also when an escape brings it in", () => {
    for (const text of ["a\u202eb", '"a\\u202eb"']) {
      const result = readSkill(validFileWith("metadata:", `  note: ${text}`));
      expect(findingsOf(result)).toEqual(["warning 5 invisible-character"]);
    }
  });

  test("warns of invisible characters in the body once, with the first line and their number", () => {
    const result = readSkill(`${validFileWith()}a\u202eb\n\u200bc\nd\u{e0041}\n`);
    expect(findingsOf(result)).toEqual(["warning 7 invisible-character"]);
    expect(messagesOf(result)).toContain("3 line(s)");
  });

  test("keeps joiners, accents and emoji without a warning", () => {
    const text = "caf\u00e9 \u{1f468}\u200d\u{1f469} \u0646\u200c\u0645\n";
    const result = readSkill(validFileWith() + text);
    expect(findingsOf(result)).toEqual([]);
    expect(manifestOf(result).instructions).toContain(text);
  });

  test("drops a byte-order mark inside the body and warns", () => {
    const result = readSkill(`${validFileWith()}a\uFEFFb\n`);
    expect(findingsOf(result)).toEqual(["warning 7 invisible-character"]);
    expect(manifestOf(result).instructions).toBe("# Body\nText.\nab\n");
  });

  test.each([
    ["as it is", "license: M\uFEFFIT"],
    ["as an escape", 'license: "M\\ufeffIT"'],
    ["before a field name", "\uFEFFlicense: MIT"],
  ])("refuses a byte-order mark inside the frontmatter, %s, and drops it in a lenient reading", (_, line) => {
    expect(findingsOf(readSkill(validFileWith(line)))).toContain("error 4 byte-order-mark");
    const lenient = readSkill(validFileWith(line), "lenient");
    expect(findingsOf(lenient)).toContain("warning 4 byte-order-mark");
    expect(manifestOf(lenient).license).toBe("MIT");
  });

  test("turns CRLF and lone CR into LF in fences, block scalars and body", () => {
    const file = fileWith("name: demo-skill", "description: |", "  Line one", "  line two");
    for (const breaks of ["\r\n", "\r"]) {
      const manifest = manifestOf(readSkill(file.replaceAll("\n", breaks)));
      expect(manifest.description).toBe("Line one\nline two");
      expect(manifest.instructions).toBe("# Body\nText.\n");
    }
  });

  test("turns a carriage return from an escape into LF", () => {
    expect(manifestOf(readSkill(validFileWith('license: "a\\r\\nb\\rc"'))).license).toBe("a\nb\nc");
  });
});

describe("fences", () => {
  test.each([
    ["an empty file", "", ""],
    ["a file without frontmatter", "# Title\n", ""],
    ["a comment above the frontmatter", `<!-- copied from wiki -->\n${validFileWith()}`, "line 2"],
    ["an empty line above the frontmatter", `\n${validFileWith()}`, "line 2"],
    ["an indented fence", ` ${validFileWith()}`, "line 1"],
    ["four dashes", `-${validFileWith()}`, "line 1"],
    ["a language after the fence", validFileWith().replace("---", "---js"), "line 4"],
    ["a name after the fence", "--- name: x\n", ""],
    ["a link target, as a checkout without symlinks leaves it", "../../other-skill/SKILL.md", ""],
  ])("refuses %s and says what the first line must be", (_, file, near) => {
    for (const reading of READINGS) {
      const result = readSkill(file, reading);
      expect(findingsOf(result)).toEqual(["error 1 frontmatter-start"]);
      expect(messagesOf(result)).toContain('must start with a first line "---"');
      expect(messagesOf(result)).toContain(near);
    }
  });

  test.each([
    ["nothing", "", ""],
    ["an indented fence", " ---\n", "line 4"],
    ["four dashes", "----\n", "line 4"],
    ["an em dash", "\u2014\n", "line 4"],
    ["the end mark of YAML", "...\n", "line 4"],
    ["a fence with text", "--- end\n", ""],
  ])("refuses frontmatter closed by %s and asks for the closing line", (_, close, near) => {
    for (const reading of READINGS) {
      const result = readSkill(`---\nname: demo-skill\ndescription: D.\n${close}step: do things\n`, reading);
      expect(findingsOf(result)).toEqual(["error 1 frontmatter-end"]);
      expect(messagesOf(result)).toContain('no closing line "---"');
      expect(messagesOf(result)).toContain(near);
    }
  });

  test("accepts blanks after the dashes and a closing fence as the last line", () => {
    const result = readSkill("--- \t\nname: demo-skill\ndescription: D.\n---\t ");
    expect(manifestOf(result).instructions).toBe("");
    expect(findingsOf(result)).toEqual(["warning 5 body-empty"]);
  });

  test("leaves later fences in the body and dashes in a value alone", () => {
    const body = "\n# A\n\n---\n\nkey: not yaml\n--- \nend";
    const manifest = manifestOf(
      readSkill(`---\nname: demo-skill\ndescription: Separates with --- markers.\n---\n${body}`),
    );
    expect(manifest.description).toBe("Separates with --- markers.");
    expect(manifest.instructions).toBe(body);
  });

  test("closes at the first fence in column 0, even inside a block scalar, but not at an indented one", () => {
    const manifest = manifestOf(readSkill(fileWith("name: demo-skill", "description: |", "  a", "  ---", "  b")));
    expect(manifest.description).toBe("a\n---\nb");
    expect(manifestOf(readSkill(fileWith("name: demo-skill", "description: |", "  a", "---", "  b"))).description).toBe(
      "a",
    );
  });

  test("accepts frontmatter at its byte cap and refuses one byte more", () => {
    const start = "name: demo-skill\ndescription: D.\n# ";
    const rest = "x".repeat(MAX_FRONTMATTER_BYTES - start.length - 2);
    expect(findingsOf(readSkill(fileWith(`${start}${rest}\u00e9`)))).toEqual([]);
    expect(findingsOf(readSkill(fileWith(`${start}${rest}x\u00e9`), "lenient"))).toEqual(["error 1 frontmatter-size"]);
  });
});

describe("YAML", () => {
  test.each([
    ["1e3", "2024-01-15"],
    ["007", "true"],
    ["0x1f", "null"],
    ["no", "1_000.50"],
    ["123", "~"],
  ])("keeps the unquoted scalars %s and %s as text", (name, description) => {
    const manifest = manifestOf(readSkill(fileWith(`name: ${name}`, `description: ${description}`), "strict", name));
    expect(manifest).toMatchObject({ name, description });
  });

  test.each([
    [
      "folded",
      [">-", "  Makes a plan.", "  Use for plans.", "", "  Not for chat."],
      "Makes a plan. Use for plans.\nNot for chat.",
    ],
    ["folded, line feeds kept at the end", [">+", "  One.", "", ""], "One."],
    ["literal", ["|", "  One", "    two"], "One\n  two"],
    ["plain over two lines", ["One", "  two"], "One two"],
    ["in single quotes", ["'It''s: # fine'"], "It's: # fine"],
    ["in double quotes", ['" \\u00e9\\t\\"x\\" "'], '\u00e9\t"x"'],
  ])("reads a description that is %s", (_, [first, ...more], description) => {
    const file = fileWith("name: demo-skill", `description: ${first}`, ...more, "license: MIT");
    expect(manifestOf(readSkill(file))).toMatchObject({ description, license: "MIT" });
  });

  test.each([
    ["a colon and a space", ["description: Use when: the user asks"], 3, "quotes"],
    ["a colon in a continued line", ["description: Use", "  when: asked"], 3, "quotes"],
    ["a colon before a block", ["description: Use: |", "  x"], 3, "quotes"],
    ["a leading at sign", ["description: @mention things"], 3, "quotes"],
    ["a leading backtick", ["description: `npm test` runner"], 3, "quotes"],
    ["a leading percent sign", ["description: % of things"], 3, "quotes"],
    ["a leading bracket", ["description: [Beta] Does things"], 3, "quotes"],
    ["a leading brace", ["description: {x} templates"], 3, "quotes"],
    ["a leading dash", ["description: - x"], 3, "quotes"],
    ["text after a closing quote", ["description: 'it's here'"], 3, "quotes"],
    ["text on the line of a block mark", ["description: > x"], 3, "quotes"],
    ["colons inside brackets", ["description: D.", "metadata: {a: [b: c: d]}"], 4, "quotes"],
    ["a quote that is never closed", ['description: "never closed', "license: MIT"], 3, "quote"],
    ["a tab as indentation", ["description: D.", "metadata:", "\ta: b"], 5, "tab"],
    ["a bracket that is never closed", ["description: D.", "metadata: [a", "license: MIT"], 5, "bracket"],
    ["an unknown escape", ['description: "C:\\projects"'], 3, "backslash"],
    ["brackets that were never opened", ["description: D.", "]]]"], 4, "quotes"],
    ["a line without a colon", ["description: D.", "license"], 4, "YAML in this line"],
  ])("refuses %s with line and advice in both readings", (_, lines, line, advice) => {
    for (const reading of READINGS) {
      const result = readSkill(fileWith("name: demo-skill", ...lines), reading);
      expect(findingsOf(result)).toEqual([`error ${line} yaml-syntax`]);
      expect(messagesOf(result)).toContain(advice);
    }
  });

  test("reports syntax errors of several lines together, and at most five", () => {
    const lines = Array.from({ length: 8 }, (_, index) => `key-${index}: @x`);
    expect(findingsOf(readSkill(fileWith(...lines)))).toEqual(
      [2, 3, 4, 5, 6].map((line) => `error ${line} yaml-syntax`),
    );
  });

  test.each([
    ["an anchor", "metadata: &m {a: b}", "yaml-anchor"],
    ["an alias", "license: *m", "yaml-anchor"],
    ["an alias as a key", "*m : x", "yaml-anchor"],
    ["an alias inside metadata", "metadata: {a: *m}", "yaml-anchor"],
    ["an alias as the tools", "allowed-tools: *m", "yaml-anchor"],
    ["a binary tag", "license: !!binary aGVsbG8=", "yaml-tag"],
    ["a text tag", "license: !!str x", "yaml-tag"],
    ["a local tag", "metadata: !local {a: b}", "yaml-tag"],
    ["a code tag", "license: !!js/function x", "yaml-tag"],
    ["a bare tag", "license: ! x", "yaml-tag"],
    ["a tag on a key", "!!str license: x", "yaml-tag"],
    ["a merge key", "metadata: {<<: {a: b}}", "yaml-merge-key"],
    ["a merge key among the fields", "<<: {license: x}", "yaml-merge-key"],
    ["another document", "--- x", "yaml-document"],
    ["the end of the document", "...", "yaml-document"],
    ["a list as a key", "? [a]\n: b", "yaml-key"],
    ["a mapping as a key inside metadata", "metadata: {{a: b}: c}", "yaml-key"],
  ])("refuses %s in both readings", (_, lines, rule) => {
    for (const reading of READINGS) {
      expect(findingsOf(readSkill(validFileWith(lines), reading))).toContain(`error 4 ${rule}`);
    }
  });

  test("names an alias that was meant as emphasis and advises quotes", () => {
    const result = readSkill(fileWith("name: demo-skill", "description: **Important** Reads files"));
    expect(findingsOf(result)).toEqual(["error 3 yaml-anchor"]);
    expect(messagesOf(result)).toContain('"**Important**"');
    expect(messagesOf(result)).toContain("quote");
  });

  test("leaves stars, ampersands and exclamation marks inside quotes and blocks alone", () => {
    const file = fileWith("name: demo-skill", "description: |", "  *a &b !c", "  ...", "license: '!x *y'");
    expect(manifestOf(readSkill(file))).toMatchObject({ description: "*a &b !c\n...", license: "!x *y" });
  });

  test("refuses a directive", () => {
    const result = readSkill("---\n%YAML 1.1\n---\n");
    expect(findingsOf(result)).toContain("error 2 yaml-document");
  });

  test.each([
    ["twice", ["name: other"], "name"],
    ["in quotes and without", ['"name": other'], "name"],
    ["by an escape", ['"n\\u0061me": other'], "name"],
    ["when it is unknown", ["__proto__: 1", "__proto__: 2"], "__proto__"],
    ["inside metadata", ["metadata: {version: 1, version: 2}"], "version"],
    ["deep in an unknown field", ["extra: [{a: 1, a: 2}]"], "a"],
  ])("refuses a key given %s, naming it", (_, lines, key) => {
    for (const reading of READINGS) {
      const result = readSkill(validFileWith(...lines), reading);
      expect(findingsOf(result)).toContain(`error ${lines.length + 3} duplicate-key`);
      expect(messagesOf(result)).toContain(`duplicate key "${key}"`);
    }
  });

  test.each([
    ["nothing", []],
    ["comments only", ["# name: demo-skill"]],
    ["a list", ["- name: demo-skill"]],
    ["text", ["hello"]],
  ])("refuses frontmatter that is %s", (_, lines) => {
    for (const reading of READINGS) {
      expect(findingsOf(readSkill(fileWith(...lines), reading))).toEqual(["error 1 frontmatter-mapping"]);
    }
  });

  test("warns when an unquoted value ends at a comment", () => {
    const result = readSkill(fileWith("name: demo-skill", "description: Fixes issue #12 and others"));
    expect(findingsOf(result)).toEqual(["warning 3 yaml-comment"]);
    expect(manifestOf(result).description).toBe("Fixes issue");
    const harmless = ["# above", "description: 'D.' # beside quotes", "license: C#", "# below"];
    expect(findingsOf(readSkill(fileWith("name: demo-skill", ...harmless)))).toEqual([]);
  });
});

describe("bounded work", () => {
  test("accepts nesting at the limit and refuses one level more", () => {
    const nested = (depth: number) => validFileWith(`extra: ${"[".repeat(depth)}${"]".repeat(depth)}`);
    expect(readSkill(nested(MAX_NESTING - 1), "lenient").ok).toBe(true);
    expect(findingsOf(readSkill(nested(MAX_NESTING), "lenient"))).toEqual(["error 4 yaml-nesting"]);
  });

  test.each([
    ["brackets", `extra: ${"[".repeat(60_000)}`],
    ["braces", `extra: ${"{".repeat(60_000)}`],
    ["mappings in braces", `extra: ${"{a: ".repeat(15_000)}`],
    ["mappings in brackets", `extra: [${"a: ".repeat(20_000)}]`],
    ["dashes", `extra:\n  ${"- ".repeat(30_000)}x`],
    ["question marks", `${"? ".repeat(30_000)}x`],
    ["mappings by indentation", Array.from({ length: 300 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n")],
  ])("refuses thousands of nested %s without exhausting the stack", (_, lines) => {
    expect(findingsOf(readSkill(validFileWith(lines), "lenient")).join()).toContain("yaml-nesting");
  });

  test.each([
    ["commas", `extra: [${",".repeat(60_000)}]`],
    ["closing brackets", `extra: ${"]".repeat(60_000)}`],
    ["tags", `extra: ${"! ".repeat(30_000)}x`],
    ["anchors", `extra: ${"&a ".repeat(20_000)}x`],
    ["keys without values", `extra: {${"a,".repeat(30_000)}}`],
    ["keys on one line", `extra: ${"a: ".repeat(20_000)}`],
    ["documents", "...\na: b\n".repeat(7_000)],
    ["directives", "%a\n".repeat(20_000)],
    ["an endless quote", `extra: "${"\n".repeat(60_000)}`],
  ])("refuses a header full of %s", (_, lines) => {
    expect(readSkill(validFileWith(lines), "lenient").ok).toBe(false);
  });

  test("names every one of ten thousand unknown fields", () => {
    const keys = Array.from({ length: 10_000 }, (_, index) => `${index}:`);
    expect(readSkill(validFileWith(...keys)).diagnostics).toHaveLength(10_000);
  });

  test("refuses a bomb of aliases without expanding it", () => {
    const level = (index: number) => `l${index}: &l${index} [${`*l${index - 1},`.repeat(9)}]`;
    const lines = ["l0: &l0 [lol]", ...Array.from({ length: 9 }, (_, index) => level(index + 1))];
    const result = readSkill(validFileWith(...lines), "lenient");
    expect(findingsOf(result)).toContain("error 4 yaml-anchor");
  });

  test("reads a body of the largest size", () => {
    const body = "x".repeat(MAX_BYTES - validFileWith().length);
    expect(manifestOf(readSkill(validFileWith() + body)).instructions).toHaveLength(body.length + 13);
  });
});

test("a key in a message is quoted, cut and free of characters that act", () => {
  expect(quoted("a\u202eb\n")).toBe('"a\\u{202e}b\\n"');
  expect(quoted("\u{e0041}")).toBe('"\\u{e0041}"');
  expect(quoted("x".repeat(80))).toBe(`"${"x".repeat(80)}"`);
  expect(quoted("x".repeat(81))).toBe(`"${"x".repeat(80)}"...`);
});
