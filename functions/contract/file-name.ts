import { ARTIFACT_EXTENSIONS } from "./artifact.ts";
import { codePointCount, firstCodePoints, isBlank, toSingleLine } from "./text.ts";

/**
 * Names of files that people download: one segment, safe on Windows, macOS and Linux, in a header and in a shell.
 * Letters of every script stay; the extension always follows from the media type.
 */

/** Longest name in code points, extension included (seed: MAX_FILENAME_CHARACTERS). */
export const MAX_FILE_NAME_CODE_POINTS = 80;
/** File systems count bytes: 255 on ext4, so a name of 80 four-byte characters must be cut further. */
const MAX_FILE_NAME_BYTES = 240;

/** Windows refuses these as the part before the first dot, whatever follows; superscript digits count as digits. */
const RESERVED = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])$/i;
const UNWANTED = /[^\p{L}\p{M}\p{N}._ -]/gu;
const KNOWN_EXTENSION = new RegExp(`\\.(?:${[...ARTIFACT_EXTENSIONS.values()].join("|")})$`, "i");

/**
 * A safe file name for an artifact of `extension` (without the dot).
 *
 * `wanted` is what the caller asked for, anything at all; only its last path segment counts. When nothing usable is
 * left, `fallback` is the stem.
 */
export function toSafeFileName(wanted: string | undefined, options: { extension: string; fallback: string }): string {
  const stem = toSafeStem(wanted ?? "", options.extension) || options.fallback;
  const room = MAX_FILE_NAME_CODE_POINTS - options.extension.length - 1;
  const cut = cutToBytes(
    firstCodePoints(guardReserved(stem), room),
    MAX_FILE_NAME_BYTES - options.extension.length - 1,
  );
  return `${trimEnds(cut) || options.fallback}.${options.extension}`;
}

function toSafeStem(wanted: string, extension: string): string {
  const segment =
    toSingleLine(wanted)
      .split(/[/\\]/)
      .findLast((part) => !isBlank(part)) ?? "";
  const cleaned = segment.normalize("NFC").replace(UNWANTED, "").replace(/\s+/g, "-");
  if (cleaned.replace(/^[.-]+/, "").toLowerCase() === extension) return "";
  return withoutExtension(trimEnds(cleaned), extension);
}

/** `a.pdf.` and `a.pdf-.pdf` end in one extension, not two: what was trimmed may have hidden another. */
function withoutExtension(stem: string, extension: string): string {
  const suffix = `.${extension}`;
  let rest = stem;
  while (rest.toLowerCase().endsWith(suffix) || (KNOWN_EXTENSION.test(rest) && rest.lastIndexOf(".") > 0)) {
    rest = trimEnds(rest.slice(0, rest.lastIndexOf(".")));
  }
  return rest;
}

/** No hidden file, no option-like name, no trailing dot or dash (Windows drops a trailing dot). */
function trimEnds(text: string): string {
  return text.replace(/^[.\- ]+/, "").replace(/[.\- ]+$/, "");
}

function guardReserved(stem: string): string {
  const head = stem.split(".")[0] ?? "";
  return RESERVED.test(head.trim()) ? `_${stem}` : stem;
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
  return (
    codePointCount(name) <= MAX_FILE_NAME_CODE_POINTS &&
    name === toSafeFileName(name, { extension, fallback: "\0" }) &&
    !name.includes("\0")
  );
}

/**
 * The `Content-Disposition` of a download: always an attachment, an ASCII fallback for old clients and the real name
 * as RFC 8187 wants it. Built in this one place because S3 signs a header with CR LF in it without complaint.
 */
export function toContentDisposition(name: string): string {
  const ascii =
    name
      .normalize("NFKD")
      .replace(/[^\x20-\x7e]/g, "")
      .replace(/["\\%;]/g, "_")
      .trim() || "download";
  return `attachment; filename="${ascii}"; filename*=UTF-8''${toExtendedValue(name)}`;
}

function toExtendedValue(name: string): string {
  return encodeURIComponent(name.toWellFormed()).replace(
    /['()*!]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
