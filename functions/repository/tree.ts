import { closeSync, constants, type Dirent, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { toAscii } from "../contract/printable.ts";
import { isSegment, MAX_PATH_SEGMENTS, SEGMENT_RULE } from "./skill-path.ts";

/**
 * The only code that reads skills from disk. It reads every file once; everything after works on those bytes, so
 * nothing can change between the check and the use.
 */

export type TreeLimits = {
  /** Files, directories and everything else together. */
  readonly maxEntries: number;
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
  readonly maxDepth: number;
};

/** SKILL.md of up to 294 kB exist in public repositories; 1 MiB a file leaves room for data and templates. */
export const TREE_LIMITS: TreeLimits = {
  maxEntries: 10_000,
  maxFileBytes: 1024 * 1024,
  maxTotalBytes: 64 * 1024 * 1024,
  maxDepth: MAX_PATH_SEGMENTS,
};

/** A regular file that was read. `path` is POSIX and relative to the root. */
export type TreeFile = { readonly path: string; readonly content: Uint8Array };
/** Something that cannot be part of a skill, and why. The path of a directory ends in a slash. */
export type TreeProblem = { readonly path: string; readonly reason: string };
export type Tree = { readonly files: readonly TreeFile[]; readonly problems: readonly TreeProblem[] };

/**
 * Reads everything below `root`; symbolic links are reported, never followed. Throws a system error when `root` itself
 * cannot be listed; what cannot be read below it is a problem.
 */
export function readTree(root: string, limits: TreeLimits = TREE_LIMITS): Tree {
  const reading: Reading = { root, limits, files: [], problems: [], entries: 0, bytes: 0 };
  readEntries(listDirectory(root), "", reading);
  return { files: reading.files, problems: reading.problems };
}

type Reading = {
  readonly root: string;
  readonly limits: TreeLimits;
  readonly files: TreeFile[];
  readonly problems: TreeProblem[];
  entries: number;
  bytes: number;
};

function readEntries(entries: readonly Dirent[], prefix: string, reading: Reading): void {
  const seen = new Map<string, string>();
  for (const entry of entries) {
    const path = toAscii(prefix + entry.name) + (entry.isDirectory() ? "/" : "");
    reading.entries += 1;
    if (reading.entries > reading.limits.maxEntries) {
      // One problem is enough to refuse; one for each of a million entries would be a second flood.
      if (reading.entries === reading.limits.maxEntries + 1) {
        reading.problems.push({ path, reason: `is beyond the limit of ${reading.limits.maxEntries} files` });
      }
      return;
    }
    const reason = findNameProblem(entry.name, seen) ?? readEntry(entry, prefix, reading);
    if (reason !== undefined) reading.problems.push({ path, reason });
  }
}

/** `SKILL.md` beside `skill.md` are one file on macOS and Windows, and which one it is depends on the checkout. */
function findNameProblem(name: string, seen: Map<string, string>): string | undefined {
  if (!isSegment(name)) return `has a name that cannot be pinned: ${SEGMENT_RULE} wanted`;
  const folded = name.toLowerCase();
  const twin = seen.get(folded);
  seen.set(folded, name);
  return twin === undefined ? undefined : `differs from ${twin} only in upper and lower case`;
}

/** The reason why the entry cannot be part of a skill; undefined once it was read. */
function readEntry(entry: Dirent, prefix: string, reading: Reading): string | undefined {
  const path = prefix + entry.name;
  if (entry.isSymbolicLink()) return "is a symbolic link";
  if (!entry.isDirectory() && !entry.isFile()) return "is not a regular file";
  try {
    return entry.isDirectory() ? readDirectory(path, reading) : readFile(path, reading);
  } catch (error) {
    return `cannot be read (${systemCode(error)})`;
  }
}

function readDirectory(path: string, reading: Reading): string | undefined {
  const { maxDepth } = reading.limits;
  if (path.split("/").length >= maxDepth) return `is deeper than ${maxDepth - 1} directories`;
  const entries = listDirectory(join(reading.root, path));
  if (entries.length === 0) return "is an empty directory";
  readEntries(entries, `${path}/`, reading);
  return undefined;
}

function readFile(path: string, reading: Reading): string | undefined {
  const { maxFileBytes, maxTotalBytes } = reading.limits;
  const content = readCapped(join(reading.root, path), maxFileBytes);
  if (content === "special") return "is no longer a regular file";
  if (content === "large") return `is larger than ${maxFileBytes} bytes`;
  reading.bytes += content.length;
  if (reading.bytes > maxTotalBytes) return `is beyond the limit of ${maxTotalBytes} bytes for all files`;
  reading.files.push({ path, content });
  return undefined;
}

/** In the order of names: a file system's own order differs from one machine to the next. */
function listDirectory(path: string): readonly Dirent[] {
  return readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * What was listed may have been swapped since: O_NOFOLLOW does not follow a link out of the repository, O_NONBLOCK does
 * not wait for ever for the writer of a pipe. Windows has neither.
 */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

function readCapped(path: string, maxBytes: number): Uint8Array | "large" | "special" {
  const descriptor = openSync(path, OPEN_FLAGS);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return "special";
    return stats.size > maxBytes ? "large" : readBytes(descriptor, stats.size);
  } finally {
    closeSync(descriptor);
  }
}

/** At most `size` bytes, fewer when the file has shrunk: the digest decides whether these are the approved ones. */
function readBytes(descriptor: number, size: number): Uint8Array {
  const buffer = Buffer.alloc(size);
  let read = 0;
  while (read < size) {
    const count = readSync(descriptor, buffer, read, size - read, read);
    if (count === 0) break;
    read += count;
  }
  return buffer.subarray(0, read);
}

/** Never the error's own text: that of a system error holds an absolute path. Rethrows what is a defect. */
export function systemCode(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  throw error;
}
