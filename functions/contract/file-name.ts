import { ARTIFACT_EXTENSIONS } from "./artifact.ts";
import { codePointCount, firstCodePoints, isBlank, toSingleLine } from "./text.ts";

/**
 * Names of files that people download: one segment, safe on Windows, macOS and Linux, in a header and in a shell.
 * Letters of every script stay; the extension always follows from the media type.
 */

/** Longest name in code points, extension included. */
export const MAX_FILE_NAME_CODE_POINTS = 80;
/** File systems count bytes: 255 on ext4, so a name of 80 four-byte characters must be cut further. */
const MAX_FILE_NAME_BYTES = 240;

/** Windows refuses these as the part before the first dot, whatever follows; superscript digits count as digits. */
const RESERVED = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])$/i;
/**
 * All but letters, marks and digits of any script and `._ -`; variation selectors and fillers are marks or letters that
 * show nothing.
 */
const UNWANTED = /[^\p{L}\p{M}\p{N}._ -]|\p{Default_Ignorable_Code_Point}/gu;
const EXTENSIONS = [...ARTIFACT_EXTENSIONS.values()].join("|");
const KNOWN_EXTENSION = new RegExp(`\\.(?:${EXTENSIONS})$`, "i");
/** `report.pdf.exe` must not read as a PDF where a viewer hides or cuts the end of a name. */
const INNER_EXTENSION = new RegExp(`\\.(?=(?:${EXTENSIONS})\\.)`, "gi");
/** What is read of a wanted name: far more than what is kept, and little enough for the regular expressions here. */
const MAX_READ_CODE_POINTS = 400;

/**
 * A safe file name for an artifact of `extension` (without the dot).
 *
 * `wanted` is what the caller asked for, anything at all; only its last path segment counts. When no letter and no
 * digit is left, `fallback` is the stem.
 */
export function toSafeFileName(wanted: string | undefined, options: { extension: string; fallback: string }): string {
  const { extension, fallback } = options;
  const room = MAX_FILE_NAME_CODE_POINTS - extension.length - 1;
  const bytes = MAX_FILE_NAME_BYTES - extension.length - 1;
  const shorten = (text: string) => withoutExtension(cutToGraphemes(text, room, bytes));
  const stem = shorten(guardReserved(shorten(toCleanSegment(wanted ?? "", extension))));
  return `${/[\p{L}\p{N}]/u.test(stem) ? stem : fallback}.${extension}`;
}

function toCleanSegment(wanted: string, extension: string): string {
  const segments = toSingleLine(wanted).split(/[/\\]/);
  const segment = firstCodePoints(segments.findLast((part) => !isBlank(part)) ?? "", MAX_READ_CODE_POINTS);
  // Composed again: what was taken out may have kept a letter and its mark apart.
  const composed = segment.normalize("NFC").replace(UNWANTED, "").normalize("NFC").replace(/\s+/g, "-");
  const stem = withoutExtension(composed).replace(INNER_EXTENSION, "-");
  return stem.toLowerCase() === extension ? "" : stem;
}

/** `a.pdf.` and `a.pdf-.pdf` end in one extension, not two: what was trimmed may have hidden another. */
function withoutExtension(stem: string): string {
  let rest = trimEnds(stem);
  while (KNOWN_EXTENSION.test(rest)) rest = trimEnds(rest.slice(0, rest.lastIndexOf(".")));
  return rest;
}

/**
 * No hidden file, no option-like name, no mark without its letter, no trailing dot or dash (Windows drops a trailing
 * dot).
 */
function trimEnds(text: string): string {
  return text.replace(/^[.\- \p{M}]+/u, "").replace(/[.\- ]+$/, "");
}

function guardReserved(stem: string): string {
  const head = stem.split(".")[0] ?? "";
  return RESERVED.test(head) ? `_${stem}` : stem;
}

/** Whole characters as a reader sees them, so that no letter loses its accent; a first one that is too long is cut. */
function cutToGraphemes(text: string, maximum: number, maximumBytes: number): string {
  const fits = (part: string) => codePointCount(part) <= maximum && Buffer.byteLength(part) <= maximumBytes;
  if (fits(text)) return text;
  let end = 0;
  for (const { index, segment } of new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)) {
    if (!fits(text.slice(0, index + segment.length))) break;
    end = index + segment.length;
  }
  return end > 0 ? text.slice(0, end) : cutToBytes(firstCodePoints(text, maximum), maximumBytes);
}

function cutToBytes(text: string, maximum: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > maximum) break;
    end += character.length;
  }
  return text.slice(0, end);
}

/** True when the name is one that {@link toSafeFileName} could have made for the media type. */
export function isSafeFileName(name: string, extension: string): boolean {
  return name === toSafeFileName(name, { extension, fallback: "\0" });
}

/**
 * The `Content-Disposition` of a download: always an attachment, an ASCII fallback for old clients and the real name
 * as RFC 8187 wants it. Built in this one place because S3 signs a header with CR LF in it without complaint.
 */
export function toContentDisposition(name: string): string {
  return `attachment; filename="${toAsciiName(name)}"; filename*=UTF-8''${toExtendedValue(name)}`;
}

/** Never empty and never only an extension, which would be a hidden file. */
function toAsciiName(name: string): string {
  const ascii = name
    .normalize("NFKD")
    .replace(/[^\x20-\x7e]/g, "")
    .replace(/["\\/%;:*?<>|]/g, "_")
    // What is left of another script's name must not look like an option.
    .replace(/^[-\s]+/, "")
    .trim();
  if (/^[^.]*[A-Za-z0-9]/.test(ascii)) return ascii;
  return `download${/\.[a-z0-9]+$/i.exec(ascii)?.[0] ?? ""}`;
}

function toExtendedValue(name: string): string {
  return encodeURIComponent(name.toWellFormed()).replace(
    /['()*!]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
