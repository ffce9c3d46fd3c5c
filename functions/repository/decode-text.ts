import { toHex } from "../contract/printable.ts";
import { decodeUtf8 } from "../contract/text.ts";
import type { Finding, Report } from "./finding.ts";

/** From bytes to text; bytes that are no UTF-8 text without control characters are refused with their line. */

type Encoding = { readonly name: string; readonly start: readonly number[] };

/** Longest mark first, as that of UTF-32 begins like that of UTF-16; without a mark, "--" betrays the encoding. */
const FOREIGN_ENCODINGS: readonly Encoding[] = [
  { name: "UTF-32", start: [0xff, 0xfe, 0, 0] },
  { name: "UTF-32", start: [0, 0, 0xfe, 0xff] },
  { name: "UTF-16", start: [0xff, 0xfe] },
  { name: "UTF-16", start: [0xfe, 0xff] },
  { name: "UTF-16", start: [0x2d, 0, 0x2d, 0] },
  { name: "UTF-16", start: [0, 0x2d, 0, 0x2d] },
];

/**
 * The text of a file of at most `maxBytes` bytes: valid UTF-8, a leading byte-order mark dropped, `\n` as the only line
 * break, and free of control characters, which are reported. Undefined when there is no text to go on with.
 */
export function decodeText(bytes: Uint8Array, maxBytes: number, report: Report): string | undefined {
  if (bytes.length > maxBytes) {
    const message = `file has ${bytes.length} bytes, at most ${maxBytes} are allowed`;
    report({ grade: "refused", line: 1, rule: "file-size", message });
    return undefined;
  }
  const foreign = FOREIGN_ENCODINGS.find(({ start }) => start.every((byte, index) => bytes[index] === byte));
  if (foreign !== undefined) {
    const message = `file is encoded as ${foreign.name}; save it as UTF-8`;
    report({ grade: "refused", line: 1, rule: "encoding", message });
    return undefined;
  }
  const text = decodeUtf8(bytes);
  if (text !== undefined) return withoutControls(text.replace(/^\uFEFF+/, "").replace(/\r\n?/g, "\n"), report);
  const line = firstInvalidLine(bytes);
  report({ grade: "refused", line, rule: "encoding", message: "bytes in this line are not valid UTF-8" });
  return undefined;
}

/** A line feed is never part of a longer UTF-8 sequence, so lines can be tried one by one. */
function firstInvalidLine(bytes: Uint8Array): number {
  let line = 1;
  let start = 0;
  while (start < bytes.length) {
    const feed = bytes.indexOf(0x0a, start);
    const end = feed === -1 ? bytes.length : feed;
    if (decodeUtf8(bytes.subarray(start, end)) === undefined) break;
    start = end + 1;
    line += 1;
  }
  return line;
}

/** Everything below the space but tab and line feed; C tools cut at NUL, XML and queues refuse the rest. */
export const CONTROL = /[\0-\x08\v-\x1f]/g;

/** Each control character is reported once, where it comes first; they go, so that the fields can still be checked. */
function withoutControls(text: string, report: Report): string {
  const seen = new Set<string>();
  for (const [index, line] of text.split("\n").entries()) {
    for (const [character] of line.matchAll(CONTROL)) {
      if (!seen.has(character)) report(controlFinding(character, index + 1));
      seen.add(character);
    }
  }
  return text.replace(CONTROL, "");
}

export function controlFinding(character: string, line: number): Finding {
  const name = character === "\0" ? "U+0000 (NUL)" : `U+${toHex(character)}`;
  return { grade: "refused", line, rule: "control-character", message: `control character ${name} is not allowed` };
}
