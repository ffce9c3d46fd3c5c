/**
 * Text as the bytes of WinAnsiEncoding (Windows-1252), the one encoding in which a standard font draws 218 characters
 * without being embedded. Never fails: what the encoding cannot write becomes one visible "?" for each character a
 * person sees, and is counted. Latin-1 is the obvious table and the wrong one: it has no euro, quotes or dashes.
 */
import { withUnixLineBreaks } from "../../contract/text.ts";

export type WinAnsiText = {
  /** One character per byte (U+0020..U+007E, U+0080..U+00FF), and `\n` and `\t` where the text had them. */
  readonly bytes: string;
  /** Characters that were drawn as another one. */
  readonly replacedCharacters: number;
};

/** Bytes 0x80..0x9F in order; the five without a character hold U+FFFD (ISO 32000-1, annex D.2). */
const HIGH_CHARACTERS =
  "\u20ac\ufffd\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\ufffd\u017d\ufffd" +
  "\ufffd\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\ufffd\u017e\u0178";
const FIRST_HIGH_BYTE = 0x80;

const HIGH_BYTES: ReadonlyMap<string, string> = new Map(
  [...HIGH_CHARACTERS].flatMap((character, index): [string, string][] =>
    character === "\ufffd" ? [] : [[character, String.fromCharCode(FIRST_HIGH_BYTE + index)]],
  ),
);

const HYPHENS: ReadonlySet<string> = new Set(["\u2010", "\u2011", "\u2212"]);
/** Figure space and narrow no-break space: like U+00A0 no place to break a line. */
const FIXED_SPACES: ReadonlySet<string> = new Set(["\u2007", "\u202f"]);

const BEYOND_ASCII = /[^\n\t -~]/;
const CONTROL = /[\p{Cc}--[\n\t]]/gv;
const UNIT_SEPARATOR = "\u001f";
const SINGLE_SUBSTITUTE =
  /[\p{Zs}\u0192\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u02c6\u02dc\u2010-\u203a\u20ac\u2122\u2212]/gu;
const UNENCODABLE = /[^\n\t -~\x80-\xff]+/gu;
/** No glyph of their own; the format characters taken out again are the number and year signs, which do have one. */
const WITHOUT_GLYPH =
  /^[[\p{Cf}\p{Default_Ignorable_Code_Point}]--[\u0600-\u0605\u06dd\u0890\u0891\u08e2\u{110bd}\u{110cd}]]+$/v;

export function encodeWinAnsi(text: string): WinAnsiText {
  const composed = withUnixLineBreaks(text.normalize("NFC"));
  if (!BEYOND_ASCII.test(composed)) return { bytes: composed, replacedCharacters: 0 };
  let replacedCharacters = 0;
  const substituted = composed
    .replace(CONTROL, (control) => (control === UNIT_SEPARATOR ? " " : ""))
    .replace(SINGLE_SUBSTITUTE, (character) => {
      if (HYPHENS.has(character)) replacedCharacters += 1;
      return toSubstitute(character);
    });
  const marks = toQuestionMarks(substituted.match(UNENCODABLE) ?? []);
  const bytes = substituted.replace(UNENCODABLE, () => {
    const mark = marks.next().value ?? "";
    replacedCharacters += mark.length;
    return mark;
  });
  return { bytes, replacedCharacters };
}

/** The characters that bytes stand for. */
export function decodeWinAnsi(bytes: string): string {
  return bytes.replace(/[\x80-\x9f]/g, (byte) => HIGH_CHARACTERS.charAt(byte.charCodeAt(0) - FIRST_HIGH_BYTE));
}

function toSubstitute(character: string): string {
  if (HYPHENS.has(character)) return "-";
  if (FIXED_SPACES.has(character)) return "\u00a0";
  const byte = HIGH_BYTES.get(character);
  if (byte !== undefined) return byte;
  return character !== "\u00a0" && /\p{Zs}/u.test(character) ? " " : character;
}

/**
 * For each run a "?" per grapheme cluster, so that an emoji of seven code points is one loss and not seven. All runs
 * are segmented at once, with a line feed between them, which ends any cluster: one call a run costs 10 µs, 40 ms in
 * all where 4,000 emoji alternate with spaces. The segmenter is made on demand, as its first making takes 16 ms.
 */
function* toQuestionMarks(runs: readonly string[]): Generator<string, undefined> {
  if (runs.length === 0) return;
  const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
  let marks = "";
  for (const { segment } of graphemes.segment(`${runs.join("\n")}\n`)) {
    if (segment !== "\n") {
      marks += WITHOUT_GLYPH.test(segment) ? "" : "?";
      continue;
    }
    yield marks;
    marks = "";
  }
}
