import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";

/**
 * The only code that reads skills from disk. It reads every file once; everything after works on those bytes, so
 * nothing can change between the check and the use.
 */

export type TreeLimits = { readonly maxFiles: number; readonly maxFileBytes: number; readonly maxDepth: number };

/** SKILL.md of up to 294 kB exist in public repositories; 1 MiB a file leaves room for data and templates. */
export const TREE_LIMITS: TreeLimits = { maxFiles: 10_000, maxFileBytes: 1024 * 1024, maxDepth: 10 };

/** A regular file that was read. `path` is POSIX and relative to the root. */
export type TreeFile = { readonly path: string; readonly content: Uint8Array };
/** Something that cannot be part of a skill, and why. */
export type TreeProblem = { readonly path: string; readonly reason: string };
export type Tree = { readonly files: readonly TreeFile[]; readonly problems: readonly TreeProblem[] };

/**
 * One segment of a path: ASCII, so that its bytes are the same on every system, and no leading dot, so that no
 * file-manager dropping (`.DS_Store`, `._SKILL.md`) is ever pinned.
 */
const SEGMENT = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;

/** Reads everything below `root`; symbolic links are reported, never followed. Throws when `root` is not readable. */
export function readTree(root: string, limits: TreeLimits = TREE_LIMITS): Tree {
  const files: TreeFile[] = [];
  const problems: TreeProblem[] = [];
  const walk = (prefix: string, depth: number): void => {
    const entries = readdirSync(join(root, prefix), { withFileTypes: true });
    if (entries.length === 0 && prefix !== "") problems.push({ path: prefix, reason: "is an empty directory" });
    for (const entry of entries) {
      const path = prefix === "" ? entry.name : `${prefix}/${entry.name}`;
      if (files.length >= limits.maxFiles) {
        problems.push({ path, reason: `is beyond the limit of ${limits.maxFiles} files` });
        return;
      }
      if (!SEGMENT.test(entry.name)) {
        problems.push({ path: printable(path), reason: "has a name outside A-Z a-z 0-9 . _ - or with a leading dot" });
      } else if (entry.isDirectory()) {
        if (depth >= limits.maxDepth) problems.push({ path, reason: `is deeper than ${limits.maxDepth} directories` });
        else walk(path, depth + 1);
      } else if (entry.isFile()) {
        const content = readCapped(join(root, path), limits.maxFileBytes);
        if (content === undefined) problems.push({ path, reason: `is larger than ${limits.maxFileBytes} bytes` });
        else files.push({ path, content });
      } else {
        problems.push({ path, reason: entry.isSymbolicLink() ? "is a symbolic link" : "is not a regular file" });
      }
    }
  };
  walk("", 1);
  return { files, problems: [...problems, ...findCaseTwins(files)] };
}

/** O_NOFOLLOW: a file that was swapped for a link after the listing is not followed out of the repository. */
function readCapped(path: string, maxBytes: number): Uint8Array | undefined {
  const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const { size } = fstatSync(descriptor);
    if (size > maxBytes) return undefined;
    const buffer = Buffer.alloc(size);
    let read = 0;
    while (read < size) {
      const count = readSync(descriptor, buffer, read, size - read, read);
      if (count === 0) break;
      read += count;
    }
    return buffer.subarray(0, read);
  } finally {
    closeSync(descriptor);
  }
}

/** `SKILL.md` beside `skill.md` are one file on macOS and Windows, and which one it is depends on the checkout. */
function findCaseTwins(files: readonly TreeFile[]): TreeProblem[] {
  const seen = new Map<string, string>();
  const twins: TreeProblem[] = [];
  for (const { path } of files) {
    const folded = path.toLowerCase();
    const other = seen.get(folded);
    if (other !== undefined) twins.push({ path, reason: `differs from ${other} only in upper and lower case` });
    seen.set(folded, path);
  }
  return twins;
}

/** A name as ASCII, so that a message cannot be made to lie by what it names. */
export function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
