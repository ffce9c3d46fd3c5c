import { hasInvisibles } from "../contract/printable.ts";
import { utf8ByteCount } from "../contract/text.ts";
import type { Report } from "./finding.ts";

/**
 * The two halves of a SKILL.md, divided by whole lines. Splitting the text at "---", the obvious alternative, cuts
 * values and bodies that hold it.
 */

/** `bodyLine` is the file's line number of the body's first line. */
export type Sections = { readonly header: string; readonly body: string; readonly bodyLine: number };

/** Bytes of UTF-8. The longest frontmatter of 281 public skills has 1,054. */
export const MAX_FRONTMATTER_BYTES = 65_536;

/** Blanks after the dashes cannot be seen and are common; anything else makes it another line. */
const FENCE = /^---[ \t]*$/;

/** What people take for a fence: indented, too long, YAML's end mark, dashes set by a word processor. */
const NEAR_FENCE = /^\s*(?:-{2,}|[\u2010-\u2015\u2212]+|\.\.\.)\s*$/;

/** Header and body around the second fence; later fences are rules in the body. Undefined when a fence is missing. */
export function splitFrontmatter(text: string, report: Report): Sections | undefined {
  const lines = text.split("\n");
  if (!FENCE.test(lines[0] ?? "")) {
    const first = lines.findIndex((line) => FENCE.test(line) || NEAR_FENCE.test(line));
    const message = `the file must start with a first line "---"${hint(first, "the first one like it is line")}`;
    report({ grade: "refused", line: 1, rule: "frontmatter-start", message });
    return undefined;
  }
  const close = lines.findIndex((line, index) => index > 0 && FENCE.test(line));
  if (close === -1) {
    const near = lines.findIndex((line) => NEAR_FENCE.test(line) && !FENCE.test(line));
    const message = `the frontmatter has no closing line "---"${hint(near, "similar, but not the same, is line")}`;
    report({ grade: "refused", line: 1, rule: "frontmatter-end", message });
    return undefined;
  }
  const header = lines.slice(1, close).join("\n");
  if (utf8ByteCount(header) > MAX_FRONTMATTER_BYTES) {
    const message = `frontmatter has ${utf8ByteCount(header)} bytes, at most ${MAX_FRONTMATTER_BYTES} are allowed`;
    report({ grade: "refused", line: 1, rule: "frontmatter-size", message });
    return undefined;
  }
  return { header, body: lines.slice(close + 1).join("\n"), bodyLine: close + 2 };
}

function hint(index: number, words: string): string {
  return index === -1 ? "" : `; ${words} ${index + 1}`;
}

/** One finding for the whole body: what shows nothing to a reviewer can still instruct a model. */
export function reportInvisibles({ body, bodyLine }: Sections, report: Report): void {
  const lines = body.split("\n").flatMap((line, index) => (hasInvisibles(line) ? [bodyLine + index] : []));
  const [line] = lines;
  if (line === undefined) return;
  const message = `invisible characters in ${lines.length} line(s) of the body`;
  report({ grade: "advice", line, rule: "invisible-character", message });
}
