import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
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
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { Fault, type Outcome, refuse, succeed } from "../functions/contract/fault.ts";
import type {
  Clock,
  KeyPage,
  LinkRequest,
  ObjectStore,
  PutCondition,
  PutRequest,
  PutResult,
  StoredObject,
} from "../functions/contract/ports.ts";

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
};

/** What a link stands for, once its signature held. */
export type LinkedFile = { readonly key: string; readonly fileName: string; readonly mediaType: string };

export type EmbeddedObjectStore = ObjectStore & {
  /** `ACCESS_DENIED` for a link that is not ours or was changed, `ARTIFACT_EXPIRED` for one that is over. */
  readLink(url: URL): Outcome<LinkedFile>;
  close(): void;
};

/** Path below which links live. */
export const LINK_PATH = "/files/";
const MAX_LINK_SECONDS = 7 * 24 * 3600;
/** A file without a row may belong to a write that is under way in another process. */
const ORPHAN_AGE_MS = 3600_000;
const SECRET_BYTES = 32;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS objects (
    key TEXT PRIMARY KEY, file TEXT NOT NULL, size INTEGER NOT NULL, media_type TEXT NOT NULL, etag TEXT NOT NULL
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
};

export function openEmbeddedObjectStore({
  directory,
  clock,
  baseUrl,
}: EmbeddedObjectStoreOptions): EmbeddedObjectStore {
  const disk = openDisk(directory);
  sweepOrphans(disk, clock);
  const secret = readSecret(join(directory, "link-secret"), disk);
  return {
    put: async (request) => put(request, disk),
    get: async (key, { maxBytes }) => get(key, maxBytes, disk),
    delete: async (key) => {
      const row = findRow(key, disk);
      if (row === undefined) return;
      // Another process may have replaced the object meanwhile: then this came first, and there is nothing to do.
      disk.remove.run(key, row.file);
      discard(row.file, disk);
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
  const database = new DatabaseSync(join(directory, "objects.sqlite"));
  database.exec("PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  database.exec(SCHEMA);
  return {
    database,
    files,
    find: database.prepare("SELECT file, size, media_type, etag FROM objects WHERE key = ?"),
    replace: database.prepare(
      "INSERT OR REPLACE INTO objects (key, file, size, media_type, etag) VALUES (?, ?, ?, ?, ?)",
    ),
    remove: database.prepare("DELETE FROM objects WHERE key = ? AND file = ?"),
    // SQLite compares text by its UTF-8 bytes, which is the order that S3 lists in.
    list: database.prepare("SELECT key FROM objects WHERE key >= ? AND key < ? AND key <> ? ORDER BY key LIMIT ?"),
  };
}

function put({ key, bytes, mediaType, condition }: PutRequest, disk: Disk): PutResult {
  const etag = toEtag(bytes);
  const file = randomBytes(16).toString("hex");
  try {
    writeDurably(join(disk.files, file), bytes);
    syncDirectory(disk.files);
    const { stored, unnamed } = commit(key, { file, size: bytes.length, mediaType, etag }, condition, disk);
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
  row: Row,
  condition: PutCondition | undefined,
  disk: Disk,
): { readonly stored: boolean; readonly unnamed: string | undefined } {
  return inTransaction(disk.database, () => {
    const previous = findRow(key, disk);
    if (!holds(condition, previous)) return { stored: false, unnamed: row.file };
    disk.replace.run(key, row.file, row.size, row.mediaType, row.etag);
    return { stored: true, unnamed: previous?.file };
  });
}

/** One process at a time is inside, of all that use the directory. */
function inTransaction<T>(database: DatabaseSync, act: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = act();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
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
  const rows = disk.list.all(from, `${prefix}\u{10ffff}`, after, limit + 1);
  const keys = rows.map((row) => String(row.key));
  const page = keys.slice(0, limit);
  return { keys: page, next: keys.length > limit ? page.at(-1) : undefined };
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

type Signing = { readonly expiresAt: number; readonly secret: Uint8Array; readonly baseUrl: string };

function toLink(key: string, { fileName, mediaType }: LinkRequest, { expiresAt, secret, baseUrl }: Signing): string {
  const url = new URL(`${baseUrl}${LINK_PATH}${key}`);
  const expires = String(expiresAt / 1000);
  url.searchParams.set("name", fileName);
  url.searchParams.set("type", mediaType);
  url.searchParams.set("expires", expires);
  url.searchParams.set("signature", sign([key, fileName, mediaType, expires], secret));
  return url.href;
}

/** JSON keeps the fields apart: joined bare, a name could borrow characters from a key. */
function sign(fields: readonly string[], secret: Uint8Array): string {
  return createHmac("sha256", secret).update(JSON.stringify(fields)).digest("hex");
}

function readLink(url: URL, secret: Uint8Array, clock: Clock): Outcome<LinkedFile> {
  const key = url.pathname.startsWith(LINK_PATH) ? url.pathname.slice(LINK_PATH.length) : "";
  const fileName = url.searchParams.get("name") ?? "";
  const mediaType = url.searchParams.get("type") ?? "";
  const expires = url.searchParams.get("expires") ?? "";
  const given = Buffer.from(url.searchParams.get("signature") ?? "");
  const wanted = Buffer.from(sign([key, fileName, mediaType, expires], secret));
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) {
    return refuse("ACCESS_DENIED", "the link's signature does not fit; ask for the job's report to get a fresh link");
  }
  if (clock() >= Number(expires) * 1000) {
    return refuse("ARTIFACT_EXPIRED", "the link has expired; ask for the job's report to get a fresh one");
  }
  return succeed({ key, fileName, mediaType });
}
