import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { Fault, type Outcome } from "../functions/contract/fault.ts";
import type {
  Clock,
  KeyPage,
  ObjectStore,
  PutCondition,
  PutRequest,
  PutResult,
  StoredObject,
} from "../functions/contract/ports.ts";
import type { LifecycleRule } from "../functions/contract/store-layout.ts";
import { type LinkedFile, readLink, toLink } from "./file-links.ts";
import { inTransaction, openDatabase } from "./sqlite.ts";

/**
 * The object store of one machine: contents in files, everything else in SQLite. A content's file is complete on disk
 * before the row that names it is committed, and files have names of their own, so a kill at any moment leaves either
 * the old object or the new one, and at worst a file that nothing names; those are swept at the next start. Several
 * processes may use one directory at the same time.
 */

export type EmbeddedObjectStoreOptions = {
  /** Directory of the store; made when missing. */
  readonly directory: string;
  readonly clock: Clock;
  /** Where the links point, without a trailing slash; asked at each link, since a port may be known late. */
  readonly baseUrl: () => string;
  /** What is removed once it is old; nothing when left out. */
  readonly lifecycle?: readonly LifecycleRule[];
};

export type EmbeddedObjectStore = ObjectStore & {
  /** `ACCESS_DENIED` for a link that is not ours or was changed, `ARTIFACT_EXPIRED` for one that is over. */
  readLink(url: URL): Outcome<LinkedFile>;
  close(): void;
};

const MAX_LINK_SECONDS = 7 * 24 * 3600;
const DAY_MS = 24 * 3600_000;
/** S3 looks for what has expired about once a day; a service that runs for weeks looks when it writes. */
const SWEEP_EVERY_MS = 3600_000;
/** A file without a row may belong to a write that is under way in another process. */
const ORPHAN_AGE_MS = 3600_000;
const SECRET_BYTES = 32;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS objects (
    key TEXT PRIMARY KEY, file TEXT NOT NULL, size INTEGER NOT NULL, media_type TEXT NOT NULL, etag TEXT NOT NULL,
    stored_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID`;

type Row = { readonly file: string; readonly size: number; readonly mediaType: string; readonly etag: string };

type Disk = {
  readonly database: DatabaseSync;
  /** Directory of the contents. */
  readonly files: string;
  readonly find: StatementSync;
  readonly replace: StatementSync;
  readonly remove: StatementSync;
  readonly list: StatementSync;
  readonly listOlder: StatementSync;
};

export function openEmbeddedObjectStore({
  directory,
  clock,
  baseUrl,
  lifecycle = [],
}: EmbeddedObjectStoreOptions): EmbeddedObjectStore {
  const disk = openDisk(directory);
  sweepOrphans(disk, clock);
  const sweepExpired = atMostEvery(SWEEP_EVERY_MS, clock, () => removeExpired(lifecycle, clock, disk));
  sweepExpired();
  const secret = readSecret(join(directory, "link-secret"), disk);
  return {
    put: async (request) => {
      sweepExpired();
      return put(request, clock(), disk);
    },
    get: async (key, { maxBytes }) => get(key, maxBytes, disk),
    getUnless: async (etag, key, { maxBytes }) => {
      return findRow(key, disk)?.etag === etag ? "unchanged" : get(key, maxBytes, disk);
    },
    delete: async (key) => {
      const row = findRow(key, disk);
      if (row !== undefined) remove(key, row.file, disk);
    },
    list: async (prefix, page) => list(prefix, page, disk),
    presign: async (key, request) => {
      const seconds = Math.min(request.seconds, MAX_LINK_SECONDS);
      const expiresAt = Math.floor(clock() / 1000) * 1000 + seconds * 1000;
      return { url: toLink(key, request, { expiresAt, secret, baseUrl: baseUrl() }), expiresAt };
    },
    readLink: (url) => readLink(url, secret, clock),
    close: () => disk.database.close(),
  };
}

function openDisk(directory: string): Disk {
  const files = join(directory, "objects");
  mkdirSync(files, { recursive: true, mode: 0o700 });
  const database = openDatabase(join(directory, "objects.sqlite"), SCHEMA);
  return {
    database,
    files,
    find: database.prepare("SELECT file, size, media_type, etag FROM objects WHERE key = ?"),
    replace: database.prepare(
      "INSERT OR REPLACE INTO objects (key, file, size, media_type, etag, stored_at) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    remove: database.prepare("DELETE FROM objects WHERE key = ? AND file = ?"),
    // SQLite compares text by its UTF-8 bytes, which is the order that S3 lists in.
    list: database.prepare("SELECT key FROM objects WHERE key >= ? AND key < ? AND key <> ? ORDER BY key LIMIT ?"),
    listOlder: database.prepare("SELECT key, file FROM objects WHERE key >= ? AND key < ? AND stored_at <= ?"),
  };
}

function put({ key, bytes, mediaType, condition }: PutRequest, storedAt: number, disk: Disk): PutResult {
  const etag = toEtag(bytes);
  const file = randomBytes(16).toString("hex");
  try {
    writeDurably(join(disk.files, file), bytes);
    syncDirectory(disk.files);
    const { stored, unnamed } = commit(key, { file, size: bytes.length, mediaType, etag, storedAt }, condition, disk);
    if (unnamed !== undefined) discard(unnamed, disk);
    return stored ? { stored, etag } : { stored };
  } catch (error) {
    discard(file, disk);
    throw error;
  }
}

/** `unnamed` is the file that no row names any more. Throws with nothing changed. */
function commit(
  key: string,
  row: Row & { readonly storedAt: number },
  condition: PutCondition | undefined,
  disk: Disk,
): { readonly stored: boolean; readonly unnamed: string | undefined } {
  return inTransaction(disk.database, () => {
    const previous = findRow(key, disk);
    if (!holds(condition, previous)) return { stored: false, unnamed: row.file };
    disk.replace.run(key, row.file, row.size, row.mediaType, row.etag, Math.floor(row.storedAt));
    return { stored: true, unnamed: previous?.file };
  });
}

function holds(condition: PutCondition | undefined, present: Row | undefined): boolean {
  if (condition === undefined) return true;
  return condition.type === "absent" ? present === undefined : present?.etag === condition.etag;
}

function get(key: string, maxBytes: number, disk: Disk): StoredObject | undefined {
  let row = findRow(key, disk);
  while (row !== undefined) {
    if (row.size > maxBytes) {
      throw new Fault("DEFECT", `the object at ${key} has ${row.size} bytes, at most ${maxBytes} expected`);
    }
    const bytes = readContent(join(disk.files, row.file));
    if (bytes !== undefined && toEtag(bytes) === row.etag) return { bytes, mediaType: row.mediaType, etag: row.etag };
    const present = findRow(key, disk);
    // A file goes when another process replaced or deleted the object after its row was read.
    if (present?.file === row.file) {
      throw new Fault(
        "DEFECT",
        `the content of ${key} is ${bytes === undefined ? "gone from" : "damaged on"} the disk`,
      );
    }
    row = present;
  }
  return undefined;
}

function readContent(path: string): Uint8Array | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if (isNodeError(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Another process may have replaced the object meanwhile: then this came first, and there is nothing to do. */
function remove(key: string, file: string, disk: Disk): void {
  disk.remove.run(key, file);
  discard(file, disk);
}

function removeExpired(lifecycle: readonly LifecycleRule[], clock: Clock, disk: Disk): void {
  for (const { prefix, days } of lifecycle) {
    const rows = disk.listOlder.all(prefix, afterPrefix(prefix), Math.floor(clock() - days * DAY_MS));
    for (const row of rows) remove(String(row.key), String(row.file), disk);
  }
}

function atMostEvery(milliseconds: number, clock: Clock, act: () => void): () => void {
  let next = Number.NEGATIVE_INFINITY;
  return () => {
    if (clock() < next) return;
    next = clock() + milliseconds;
    act();
  };
}

/** What cannot be removed now is an orphan, and harmless: to throw would deny a write that is committed. */
function discard(file: string, { files }: Disk): void {
  try {
    rmSync(join(files, file), { force: true });
  } catch {
    // Swept at a later start.
  }
}

function writeDurably(path: string, bytes: Uint8Array): void {
  const descriptor = openSync(path, "wx", 0o600);
  try {
    writeFileSync(descriptor, bytes);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A new file's name is durable only with its directory. Windows has no such call and needs none. */
function syncDirectory(path: string): void {
  if (process.platform === "win32") return;
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function toEtag(bytes: Uint8Array): string {
  return `"${createHash("sha256").update(bytes).digest("hex")}"`;
}

function findRow(key: string, { find }: Disk): Row | undefined {
  const row = find.get(key);
  if (row === undefined) return undefined;
  return {
    file: String(row.file),
    size: Number(row.size),
    mediaType: String(row.media_type),
    etag: String(row.etag),
  };
}

function list(
  prefix: string,
  { limit, after = "" }: { readonly limit: number; readonly after?: string | undefined },
  disk: Disk,
): KeyPage {
  // Bounds on both sides, so that a page reads its own keys and not all that come after them.
  const from = after > prefix ? after : prefix;
  const rows = disk.list.all(from, afterPrefix(prefix), after, limit + 1);
  const keys = rows.map((row) => String(row.key));
  const page = keys.slice(0, limit);
  return { keys: page, next: keys.length > limit ? page.at(-1) : undefined };
}

/** Above every key that begins with the prefix. */
function afterPrefix(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}

/** Files that no row names and that are too old to belong to a write that is under way. */
function sweepOrphans(disk: Disk, clock: Clock): void {
  const rows = disk.database.prepare("SELECT file FROM objects").all();
  const named = new Set(rows.map((row) => String(row.file)));
  for (const file of readdirSync(disk.files)) {
    if (named.has(file)) continue;
    const modified = statSync(join(disk.files, file), { throwIfNoEntry: false })?.mtimeMs ?? clock();
    if (clock() - modified > ORPHAN_AGE_MS) discard(file, disk);
  }
}

/**
 * Made once, whole or not at all: a reader must never meet half a secret, and a kill must not leave one. Inside a
 * transaction, so that two processes that start together agree on one.
 */
function readSecret(path: string, { database }: Disk): Uint8Array {
  const secret = inTransaction(database, () => {
    if (!existsSync(path)) {
      writeFileSync(`${path}.new`, randomBytes(SECRET_BYTES), { mode: 0o600, flush: true });
      renameSync(`${path}.new`, path);
    }
    return readFileSync(path);
  });
  if (secret.length === SECRET_BYTES) return secret;
  throw new Fault("DEFECT", "the link secret of the store is damaged; remove the file link-secret and start again");
}

function isNodeError(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
