import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeWinAnsi, encodeWinAnsi } from "../../../../functions/handlers/pdf/win-ansi.ts";
import { HOSTILE_TEXTS, WINDOWS_1252 } from "./hostile-texts.ts";

const encode = (text: string) => {
  const { bytes, replacedCharacters } = encodeWinAnsi(text);
  return [decodeWinAnsi(bytes), replacedCharacters];
};

describe("what Windows-1252 can write", () => {
  test("is 218 characters, each of which comes back as itself", () => {
    expect(WINDOWS_1252).toHaveLength(218);
    for (const character of WINDOWS_1252) expect(encode(character)).toEqual([character, 0]);
  });

  test("becomes the very byte of that encoding", () => {
    const bytes = Uint8Array.from(WINDOWS_1252, (character) => encodeWinAnsi(character).bytes.charCodeAt(0));
    expect(new TextDecoder("windows-1252").decode(bytes)).toBe(WINDOWS_1252.join(""));
  });

  test("is composed first, so that a letter and its accent are one character", () => {
    expect(encode("e\u0301 A\u030a n\u0303 \u212b")).toEqual(["é Å ñ Å", 0]);
  });
});

describe("white space", () => {
  test.each([
    ["the em space", "a\u2003b", "a b"],
    ["the ideographic space", "a\u3000b", "a b"],
    ["the thin space", "a\u2009b", "a b"],
    ["the unit separator", "a\u001fb", "a b"],
  ])("%s becomes a space", (_, text, expected) => {
    expect(encode(text)).toEqual([expected, 0]);
  });

  test.each([
    ["the no-break space", "a\u00a0b"],
    ["the narrow no-break space", "a\u202fb"],
    ["the figure space", "a\u2007b"],
  ])("%s stays a blank that no line breaks at", (_, text) => {
    expect(encode(text)).toEqual(["a\u00a0b", 0]);
  });

  test.each(["\r", "\r\n", "\v", "\f", "\u001c", "\u001d", "\u001e", "\u0085", "\u2028", "\u2029"])(
    "the line break %j becomes a line feed",
    (lineBreak) => {
      expect(encode(`a${lineBreak}b`)).toEqual(["a\nb", 0]);
    },
  );

  test("tabs are left for the layout", () => {
    expect(encode("a\té")).toEqual(["a\té", 0]);
  });
});

describe("what has no glyph", () => {
  test.each([
    ["controls", "a\u0000b\u0007c\u001b[31md\u007fe\u009ff", "abc[31mdef"],
    ["zero-width characters", "a\u200bb\u200cc\u200dd\u2060e\ufefff", "abcdef"],
    ["direction characters", "a\u202eb\u2066c\u200fd", "abcd"],
    ["fillers", "a\u115fb\u3164c\uffa0d", "abcd"],
    ["variation selectors", "©\ufe0f", "©"],
  ])("%s are dropped and not counted", (_, text, expected) => {
    expect(encode(text)).toEqual([expected, 0]);
  });

  test("the soft hyphen is the one format character that stays", () => {
    expect(encode("a\u00adb")).toEqual(["a\u00adb", 0]);
  });
});

describe("what Windows-1252 cannot write", () => {
  test.each([
    ["a hyphen", "a\u2010b", "a-b", 1],
    ["a non-breaking hyphen", "a\u2011b", "a-b", 1],
    ["a minus", "\u22125", "-5", 1],
    ["a letter", "Łódź", "?ód?", 2],
    ["ideographs, one by one", "日本語", "???", 3],
    ["a mark without its letter", "x\u0302", "x?", 1],
    ["a pile of marks", "\u0301\u0316\u0317", "?", 1],
    ["an emoji", "ok 😀", "ok ?", 1],
    ["two emoji", "😀😀", "??", 2],
    ["a family joined of four", "👨‍👩‍👧‍👦", "?", 1],
    ["an emoji with a skin tone", "👍🏽", "?", 1],
    ["a flag", "🇩🇪", "?", 1],
    ["a flag of tags", "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}", "?", 1],
    ["a heart with its variation selector", "❤️", "?", 1],
    ["a syllable of several code points", "क्षि", "?", 1],
    ["lone surrogates", "\ud800a\udc00\udfff", "?a??", 3],
    ["a visible format character", "\u06dd", "?", 1],
  ])("%s is replaced once and counted", (_, text, expected, replaced) => {
    expect(encode(text)).toEqual([expected, replaced]);
  });

  test("replacements keep their places between other text", () => {
    expect(encode("a日b\u200dc😀d\n→")).toEqual(["a?bc?d\n?", 3]);
  });
});

test("never fails, and gives only bytes that have a glyph, line feeds and tabs", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
      const { bytes, replacedCharacters } = encodeWinAnsi(text);
      expect(bytes).toMatch(/^[\n\t\x20-\x7e\x80\x82-\x8c\x8e\x91-\x9c\x9e-\xff]*$/);
      expect(replacedCharacters).toBeLessThanOrEqual(bytes.length);
    }),
    { numRuns: 1_000 },
  );
});

test("text that can be written comes back as it went in", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...WINDOWS_1252, "\n", "\t"), maxLength: 60 }), (text) => {
      expect(encode(text)).toEqual([text.normalize("NFC"), 0]);
    }),
  );
});

test.each(Object.entries(HOSTILE_TEXTS))("takes less than a second: %s", (_, text) => {
  const start = performance.now();
  encodeWinAnsi(text);
  expect(performance.now() - start).toBeLessThan(1_000);
});
