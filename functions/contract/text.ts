/**
 * Text as a person counts it: code points for limits, bytes for caps, no invisible characters.
 * JavaScript's `length` counts UTF-16 units and its `\s` misses the separators U+001C..U+001F and everything of no
 * width; a limit or a blank check built on either accepts what it should refuse.
 */

const encoder = new TextEncoder();

/** Undefined when the bytes are not UTF-8; a byte-order mark stays. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // The decoder says no more than that.
    return undefined;
  }
}

/** Number of Unicode code points; a lone surrogate counts as one. */
export function codePointCount(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Bytes of the text in UTF-8. */
export function utf8ByteCount(text: string): number {
  return encoder.encode(text).length;
}

/** The first `maximum` code points, never half a surrogate pair. */
export function firstCodePoints(text: string, maximum: number): string {
  if (text.length <= maximum) return text;
  let end = 0;
  let count = 0;
  for (const character of text) {
    if (count === maximum) break;
    end += character.length;
    count += 1;
  }
  return text.slice(0, end);
}

/** Line and paragraph breaks as Python's `str.splitlines` sees them. */
const LINE_BREAK = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/g;

/** Every kind of line break becomes `\n`. */
export function withUnixLineBreaks(text: string): string {
  return text.replace(LINE_BREAK, "\n");
}

/**
 * Characters that show nothing and can only mislead a reader or break a consumer: controls other than tab and line
 * feed, format characters (zero width, direction overrides, byte-order mark) and lone surrogates.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\u115f\u1160\u17b4\u17b5\u3164\uffa0]/gu;
const KEPT = new Set(["\n", "\t", "\u200c", "\u200d"]);

/** Drops what {@link INVISIBLE} names; the joiners U+200C and U+200D stay, because scripts and emoji need them. */
export function withoutInvisibles(text: string): string {
  return text.replace(INVISIBLE, (character) => (KEPT.has(character) ? character : ""));
}

/** White space of every kind becomes one space, control and format characters go, ends are trimmed. */
export function toSingleLine(text: string): string {
  return withoutInvisibles(withUnixLineBreaks(text).replace(/\x1f/g, " ")).replace(/\s+/gu, " ").trim();
}

/**
 * Several lines: breaks become `\n`, control and format characters go, line ends and outer blank lines are trimmed.
 * Line by line, because `/ +$/` tries again at every space of a long run: 256 KiB of them would take a minute.
 */
export function toMultiLine(text: string): string {
  const lines = withoutInvisibles(withUnixLineBreaks(text))
    .split("\n")
    .map((line) => line.trimEnd());
  const first = lines.findIndex((line) => line !== "");
  return first === -1 ? "" : lines.slice(first, lines.findLastIndex((line) => line !== "") + 1).join("\n");
}

/**
 * Unicode's characters that show nothing (joiners, variation selectors, fillers), white space, and the empty Braille
 * cell.
 */
const UNSEEN = /^[\s\p{Default_Ignorable_Code_Point}\u2800]*$/u;

/** True when nothing in the text would be seen. */
export function isBlank(text: string): boolean {
  return UNSEEN.test(withoutInvisibles(text));
}
