import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  codePointCount,
  firstCodePoints,
  isBlank,
  toMultiLine,
  toSingleLine,
  utf8ByteCount,
  withoutInvisibles,
  withUnixLineBreaks,
} from "../../../functions/contract/text.ts";

const BLANKS = [
  "",
  " ",
  "\t\r\n",
  "\u00a0",
  "\u2003\u3000",
  "\u200b",
  "\ufeff",
  "\u2800",
  "\u3164",
  "\uffa0",
  "\u115f\u1160",
];
const INVISIBLES = [
  "\u200c\u200d",
  "\u202e",
  "\u2060",
  "\u00ad",
  "\u034f",
  "\ufe0f",
  "\u{e0041}",
  "\0",
  "\u001c\u001f",
  "\ud83d",
];

describe("blank", () => {
  test.each([...BLANKS, ...INVISIBLES])("%j shows nothing", (text) => {
    expect(isBlank(text)).toBe(true);
    expect(isBlank(`${text}.${text}`)).toBe(false);
  });

  test.each(["a", ".", "😀", "\u0301", "0", "\u200dx"])("%j shows something", (text) => {
    expect(isBlank(text)).toBe(false);
  });
});

describe("lengths", () => {
  test("count code points, not UTF-16 units", () => {
    expect(codePointCount("a😀é")).toBe(3);
    expect(codePointCount("\ud83d")).toBe(1);
    expect(utf8ByteCount("a😀é")).toBe(7);
  });

  test("the first code points never end in half a pair", () => {
    expect(firstCodePoints("😀😀😀", 2)).toBe("😀😀");
    expect(firstCodePoints("ab", 5)).toBe("ab");
    expect(firstCodePoints("ab", 0)).toBe("");
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(20), (text, maximum) => {
        expect(firstCodePoints(text, maximum)).toBe([...text].slice(0, maximum).join(""));
      }),
    );
  });
});

describe("line breaks", () => {
  test.each(["\n", "\r", "\r\n", "\v", "\f", "\u001c", "\u001d", "\u001e", "\u0085", "\u2028", "\u2029"])(
    "%j is one line break",
    (breaking) => {
      expect(withUnixLineBreaks(`a${breaking}b`)).toBe("a\nb");
      expect(toSingleLine(`a${breaking}b`)).toBe("a b");
      expect(toMultiLine(`a${breaking}b`)).toBe("a\nb");
    },
  );

  test("U+001F is white space within a line", () => {
    expect(toSingleLine("a\u001fb")).toBe("a b");
  });
});

describe("one line", () => {
  test.each([
    ["a\n2. fake step", "a 2. fake step"],
    ["  b\u2003c\u00a0d ", "b c d"],
    ["e\u0000f", "ef"],
    ["\ufeffx\u200by", "xy"],
    ["\u202eabc", "abc"],
    ["👩\u200d🔬 می\u200cخواهم", "👩\u200d🔬 می\u200cخواهم"],
  ])("%j", (text, line) => {
    expect(toSingleLine(text)).toBe(line);
  });

  test("has no control, direction or lone surrogate, no outer and no double space, whatever it was", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const line = toSingleLine(text);
        expect(line).not.toMatch(/\p{Cc}|\p{Cs}|[\u202a-\u202e\u2066-\u2069]|^\s|\s$|\s\s/u);
        expect(toSingleLine(line)).toBe(line);
      }),
    );
  });
});

describe("several lines", () => {
  test("keep indentation, inner blank lines and tabs, and lose what trails and what is around them", () => {
    expect(toMultiLine("\n \r\n  a\t b \u00a0\n\n\tc\u200b \n \n")).toBe("  a\t b\n\n\tc");
    expect(toMultiLine(" \n\u2003\n")).toBe("");
  });

  test.each([" ", "\n", " \n", "\t"])("a quarter of a megabyte of %j takes no time", (run) => {
    const started = performance.now();
    expect(toMultiLine(`x${run.repeat(250_000)}y`).at(-1)).toBe("y");
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  test("invisible characters go, joiners stay", () => {
    expect(withoutInvisibles("a\u200bb\u200dc\u200cd\u2066e\u3164f\u0007g\th\n")).toBe("ab\u200dc\u200cdefg\th\n");
  });
});
