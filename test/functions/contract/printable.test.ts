import { describe, expect, test } from "vitest";
import { hasInvisibles, quoted, toAscii, toVisible, toVisibleLines } from "../../../functions/contract/printable.ts";

test.each([
  ["a control character", "a\u001b[31mb", "a\\u{001b}[31mb"],
  ["a C1 control, which terminals obey too", "a\u009bb", "a\\u{009b}b"],
  ["DEL", "a\u007fb", "a\\u{007f}b"],
  ["a line feed", "a\nb", "a\\u{000a}b"],
  ["a direction override", "a\u202eb", "a\\u{202e}b"],
  ["a line separator", "a\u2028b", "a\\u{2028}b"],
  ["half a character", "a\ud800b", "a\\u{d800}b"],
  ["an annotation mark", "a\ufff9b", "a\\u{fff9}b"],
  ["a tag", "a\u{e0041}b", "a\\u{e0041}b"],
  ["a variation selector", "a\u{e0100}b", "a\\u{e0100}b"],
  ["a filler", "a\u3164b", "a\\u{3164}b"],
])("shows %s as an escape", (_, text, shown) => {
  expect(toVisible(text)).toBe(shown);
});

test("leaves letters, marks, emoji and blanks of every script as they are", () => {
  const text = "R\u00e9sum\u00e9 e\u0301 \u65e5\u672c \u0627\u0644 \u{1f600} \u00a0-";
  expect(toVisible(text)).toBe(text);
});

test("keeps line feeds and tabs of a text in several lines", () => {
  expect(toVisibleLines("a\n\tb\r\u202e")).toBe("a\n\tb\\u{000d}\\u{202e}");
});

test("writes a path in ASCII, so that look-alikes differ", () => {
  expect(toAscii("\u0405KILL.md \u{1f600}")).toBe("\\u{0405}KILL.md \\u{1f600}");
});

test("quotes a name and cuts it after 80 code points", () => {
  expect(quoted('a"b\n')).toBe('"a\\"b\\n"');
  expect(quoted("\u{1f600}".repeat(81))).toBe(`"${"\u{1f600}".repeat(80)}"...`);
  expect(quoted("\u202e")).toBe('"\\u{202e}"');
});

describe("invisible characters", () => {
  test.each(["a\u200bb", "a\u{e0001}", "a\u{e0100}\u{e0101}", "\u2764\ufe0f\ufe0f", "\u034f", "\u202e"])(
    "are found in %j",
    (text) => expect(hasInvisibles(text)).toBe(true),
  );

  test.each(["", "text\n\tmore", "\u2764\ufe0f", "\u{1f468}\u200d\u{1f469}", "\u0646\u200c\u0647"])(
    "are not seen in %j, where they shape what is seen",
    (text) => expect(hasInvisibles(text)).toBe(false),
  );
});
