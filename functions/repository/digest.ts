import { createHash } from "node:crypto";

/**
 * The digest that an approval is about: SHA-256, a constant, over every file of a skill. Each field is preceded by
 * its length, because joining with a separator lets a file's content pose as the next file's path.
 */

/** Each path once, well-formed Unicode: two lone surrogates would have the same bytes. */
export type DigestEntry = { readonly path: string; readonly content: Uint8Array };

/** Ascending by the UTF-8 bytes of the path: JavaScript's own order is by UTF-16 unit, a locale's by language. */
export function inPathOrder<T extends { readonly path: string }>(entries: readonly T[]): T[] {
  return entries.toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
}

/**
 * SHA-256 (hex) over path length, path, content length, content of each entry in path order; lengths are 8 bytes,
 * big-endian. Paths are POSIX and relative to the skill. Modes and times are not part of it.
 */
export function digestOfEntries(entries: readonly DigestEntry[]): string {
  const hash = createHash("sha256");
  for (const { path, content } of inPathOrder(entries)) {
    for (const field of [Buffer.from(path), content]) {
      hash.update(lengthPrefix(field.length));
      hash.update(field);
    }
  }
  return hash.digest("hex");
}

function lengthPrefix(length: number): Buffer {
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64BE(BigInt(length));
  return prefix;
}
