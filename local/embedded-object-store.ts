import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Fault, type Outcome, refuse, succeed } from "../functions/contract/fault.ts";
import type {
  Clock,
  KeyPage,
  LinkRequest,
  ObjectStore,
  PutCondition,
  PutRequest,
  PutResult,
} from "../functions/contract/ports.ts";

/**
 * The object store of one machine: contents in files, everything else in SQLite. A content's file is complete on disk
 * before the row that names it is committed, and files have names of their own, so a kill at any moment leaves either
 * the old object or the new one, and at worst a file that nothing names; those are swept at the next start.
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

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS objects (
    key TEXT PRIMARY KEY, file TEXT NOT NULL, size INTEGER NOT NULL, media_type TEXT NOT NULL, etag TEXT NOT NULL
  ) STRICT, WITHOUT ROWID`;

type Row = { readonly file: string; readonly size: number; readonly mediaType: string; readonly etag: string };

export function openEmbeddedObjectStore({
  directory,
  clock,
  baseUrl,
}: EmbeddedObjectStoreOptions): EmbeddedObjectStore {
  const files = join(directory, "objects");
  mkdirSync(files, { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(join(directory, "objects.sqlite"));
  database.exec("PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  database.exec(SCHEMA);
  sweepOrphans(database, files, clock);
  const secret = readSecret(join(directory, "link-secret"));
  return {
    put: async (request) => put(request, database, files),
    get: async (key, { maxBytes }) => {
      const row = findRow(database, key);
      if (row === undefined) return undefined;
      if (row.size > maxBytes) {
        throw new Fault("DEFECT", `the object at ${key} has ${row.size} bytes, at most ${maxBytes} expected`);
      }
      return { bytes: readFileSync(join(files, row.file)), mediaType: row.mediaType, etag: row.etag };
    },
    delete: async (key) => {
      const row = findRow(database, key);
      if (row === undefined) return;
      database.prepare("DELETE FROM objects WHERE key = ? AND file = ?").run(key, row.file);
      rmSync(join(files, row.file), { force: true });
    },
    list: async (prefix, page) => list(database, prefix, page),
    presign: async (key, request) => {
      const seconds = Math.min(request.seconds, MAX_LINK_SECONDS);
      const expiresAt = Math.floor(clock() / 1000) * 1000 + seconds * 1000;
      return { url: toLink(key, request, { expiresAt, secret, baseUrl: baseUrl() }), expiresAt };
    },
    readLink: (url) => readLink(url, secret, clock),
    close: () => database.close(),
  };
}

function put({ key, bytes, mediaType, condition }: PutRequest, database: DatabaseSync, files: string): PutResult {
  const file = randomBytes(16).toString("hex");
  const etag = `"${createHash("sha256").update(bytes).digest("hex")}"`;
  writeDurably(join(files, file), bytes);
  database.exec("BEGIN IMMEDIATE");
  try {
    const previous = findRow(database, key);
    if (!holds(condition, previous)) {
      database.exec("ROLLBACK");
      rmSync(join(files, file), { force: true });
      return { stored: false };
    }
    database
      .prepare("INSERT OR REPLACE INTO objects (key, file, size, media_type, etag) VALUES (?, ?, ?, ?, ?)")
      .run(key, file, bytes.length, mediaType, etag);
    database.exec("COMMIT");
    if (previous !== undefined) rmSync(join(files, previous.file), { force: true });
    return { stored: true, etag };
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    rmSync(join(files, file), { force: true });
    throw error;
  }
}

function holds(condition: PutCondition | undefined, present: Row | undefined): boolean {
  if (condition === undefined) return true;
  return condition.type === "absent" ? present === undefined : present?.etag === condition.etag;
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

function findRow(database: DatabaseSync, key: string): Row | undefined {
  const row = database.prepare("SELECT file, size, media_type, etag FROM objects WHERE key = ?").get(key);
  if (row === undefined) return undefined;
  return {
    file: String(row.file),
    size: Number(row.size),
    mediaType: String(row.media_type),
    etag: String(row.etag),
  };
}

function list(
  database: DatabaseSync,
  prefix: string,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
): KeyPage {
  // SQLite compares text by its UTF-8 bytes, which is the order that S3 lists in.
  const rows = database
    .prepare("SELECT key FROM objects WHERE key > ? AND key >= ? AND substr(key, 1, ?) = ? ORDER BY key LIMIT ?")
    .all(after ?? "", prefix, prefix.length, prefix, limit + 1);
  const keys = rows.map((row) => String(row.key));
  const page = keys.slice(0, limit);
  return { keys: page, next: keys.length > limit ? page.at(-1) : undefined };
}

/** Files that no row names and that are too old to belong to a write that is under way. */
function sweepOrphans(database: DatabaseSync, files: string, clock: Clock): void {
  const named = new Set(
    database
      .prepare("SELECT file FROM objects")
      .all()
      .map((row) => String(row.file)),
  );
  for (const file of readdirSync(files)) {
    if (named.has(file)) continue;
    const modified = statSync(join(files, file), { throwIfNoEntry: false })?.mtimeMs ?? clock();
    if (clock() - modified > ORPHAN_AGE_MS) rmSync(join(files, file), { force: true });
  }
}

/** Made once; a second process that loses the race reads what the first one wrote. */
function readSecret(path: string): Uint8Array {
  try {
    writeFileSync(path, randomBytes(32), { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  const secret = readFileSync(path);
  if (secret.length !== 32)
    throw new Fault("DEFECT", "the link secret of the store is damaged; remove it and start again");
  return secret;
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
  const key = url.pathname.slice(LINK_PATH.length);
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
