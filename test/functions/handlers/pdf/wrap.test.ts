import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { wrapText } from "../../../../functions/handlers/pdf/wrap.ts";

const wrap = (text: string, width: number) => wrapText(text, width, () => 1);

describe("a width that hardly holds anything", () => {
  test.each([
    ["abc", 1, ["a", "b", "c"]],
    ["abc", 0, ["a", "b", "c"]],
    ["abc", -1, ["a", "b", "c"]],
    ["", 10, [""]],
    ["", 0, [""]],
    ["😀😀", 1, ["😀", "😀"]],
    ["😀😀", 0, ["😀", "😀"]],
    ["a b", 0, ["a", "b"]],
    ["abc", Number.NaN, ["abc"]],
  ])("%j in %d gives %j", (text, width, lines) => {
    expect(wrap(text, width)).toEqual(lines);
  });
});

describe("breaks", () => {
  test.each([
    ["at the last space that fits", "aa bb cc", 5, ["aa bb", "cc"]],
    ["not before a word that just fits", "aa bb", 5, ["aa bb"]],
    ["inside a word longer than a line", "abcdef", 4, ["abcd", "ef"]],
    ["before a long word, which starts on its own line", "a bcdefg", 4, ["a", "bcde", "fg"]],
    ["after the rest of a long word when more fits", "abcdef g", 4, ["abcd", "ef g"]],
    ["never at a no-break space", "aa b\u00a0c", 5, ["aa", "b\u00a0c"]],
    ["never at a hyphen", "aa b-c", 5, ["aa", "b-c"]],
  ])("%s", (_, text, width, lines) => {
    expect(wrap(text, width)).toEqual(lines);
  });
});

describe("spaces", () => {
  test.each([
    ["before the first word stay", "    if x:", 20, ["    if x:"]],
    ["inside a line stay", "A    B", 20, ["A    B"]],
    ["at the end go", "a   ", 20, ["a"]],
    ["at a break go", "aaa    bbb", 5, ["aaa", "bbb"]],
    ["alone leave an empty line", "     ", 3, [""]],
    ["before a word too long for its line stay, and the word is cut", "  abcdef", 4, ["  ab", "cdef"]],
    ["too wide for anything after them go", "     ab", 4, ["ab"]],
  ])("%s", (_, text, width, lines) => {
    expect(wrap(text, width)).toEqual(lines);
  });
});

test("nothing is lost but spaces, and no line is too wide", () => {
  const unit = fc.constantFrom("a", "b", "W", "i", " ", " ", "-", "\u00a0", "😀");
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 80 }), fc.integer({ min: 3, max: 30 }), (text, width) => {
      const measure = (codePoint: number) => (codePoint === 0x57 ? 3 : codePoint === 0x69 ? 0.5 : 1);
      const lines = wrapText(text, width, measure);
      expect(lines.join("").replaceAll(" ", "")).toBe(text.replaceAll(" ", ""));
      for (const line of lines) {
        const total = Array.from(line, (character) => measure(character.codePointAt(0) ?? 0)).reduce(
          (a, b) => a + b,
          0,
        );
        expect(total).toBeLessThanOrEqual(width);
        expect(line.endsWith(" ")).toBe(false);
      }
    }),
    { numRuns: 2_000 },
  );
});

test("a line that fits comes back as it is, without the spaces at its end", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("a", " "), maxLength: 40 }), (text) => {
      expect(wrap(text, 40)).toEqual([text.replace(/ +$/, "")]);
    }),
  );
});

test.each([" ", "a", "a ", "😀", "aaaaaaaaaaaaaaa "])(
  "a million characters of %j take less than two seconds",
  (unit) => {
    const start = performance.now();
    wrap(unit.repeat(1_000_000 / unit.length), 80);
    expect(performance.now() - start).toBeLessThan(2_000);
  },
);
