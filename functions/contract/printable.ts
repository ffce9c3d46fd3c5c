import { firstCodePoints, withoutInvisibles } from "./text.ts";

/** Text of others as a person who decides about it may see it: on a terminal, in a log, in a message. */

/** What would act on a terminal or a reader instead of being seen; variation selectors can carry a hidden text. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

const MAX_QUOTED_CODE_POINTS = 80;

/** One line: letters of every script stay, everything unseen becomes an escape such as `\u{202e}`. */
export function toVisible(text: string): string {
  return text.replace(UNSEEN, toEscape);
}

/** Several lines: as {@link toVisible}, but line feeds and tabs stay. */
export function toVisibleLines(text: string): string {
  return text.replace(UNSEEN, (unseen) => (unseen === "\n" || unseen === "\t" ? unseen : toEscape(unseen)));
}

/** A name or key for a message: in quotes and cut. */
export function quoted(text: string): string {
  const head = firstCodePoints(text, MAX_QUOTED_CODE_POINTS);
  const visible = toVisible(JSON.stringify(head));
  return head.length < text.length ? `${visible}...` : visible;
}

/** A file's name: ASCII only, because a path is compared by eye and a Cyrillic letter looks like a Latin one. */
export function toAscii(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, toEscape);
}

function toEscape(character: string): string {
  return `\\u{${toHex(character)}}`;
}

/** The code point in at least four hexadecimal digits. */
export function toHex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).padStart(4, "0");
}

/** A text can be written in variation selectors and nothing of it is seen; a single one styles an emoji. */
const SMUGGLED = /(?!\u200c|\u200d|\ufe0e|\ufe0f)\p{Default_Ignorable_Code_Point}|[\ufe00-\ufe0f]{2}/u;

/** True when the text holds what shows nothing to a reader and can still instruct a model. */
export function hasInvisibles(text: string): boolean {
  return withoutInvisibles(text) !== text || SMUGGLED.test(text);
}
