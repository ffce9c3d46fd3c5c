import { ARTIFACT_EXTENSIONS, type Artifact } from "../contract/artifact.ts";
import { Fault } from "../contract/fault.ts";
import { JobRecord } from "../contract/job.ts";
import type { ObjectStore } from "../contract/ports.ts";
import { ARTIFACTS_PREFIX, JOBS_PREFIX } from "../contract/store-layout.ts";
import { isJobId } from "./ids.ts";

/**
 * Jobs and artifacts in the object store. Every key begins with its owner, so that one caller's key can never name
 * another's object, and holds ids only: a file name with `+`, `%` or `..` in a key breaks links and events.
 */

/**
 * A synchronous Lambda answers with 6,291,556 bytes at most, and the report is a JSON text inside the JSON of the answer,
 * where a quote or a backslash takes two bytes. What is left is for headers.
 */
export const MAX_ANSWER_BYTES = 6_000_000;
/** Allowed for the link that a report adds to each file. */
const LINK_BYTES = 2_500;
const JSON_TYPE = "application/json";

export type StoredJob = { readonly record: JobRecord; readonly etag: string };

export function jobKey(owner: string, jobId: string): string {
  return `${JOBS_PREFIX}${owner}/${jobId}.json`;
}

export function artifactKey(owner: string, jobId: string, artifactId: string, mediaType: string): string {
  return `${ARTIFACTS_PREFIX}${owner}/${jobId}-${artifactId}.${ARTIFACT_EXTENSIONS.get(mediaType) ?? "bin"}`;
}

export async function putArtifact(store: ObjectStore, key: string, artifact: Artifact): Promise<void> {
  const { stored } = await store.put({
    key,
    bytes: artifact.bytes,
    mediaType: artifact.mediaType,
    condition: { type: "absent" },
  });
  if (!stored) throw new Fault("DEFECT", `an object is already at ${key}: two jobs have one id`);
}

export async function putNewJob(store: ObjectStore, record: JobRecord): Promise<void> {
  const key = jobKey(record.owner, record.job_id);
  const { stored } = await store.put({
    key,
    bytes: toBytes(record),
    mediaType: JSON_TYPE,
    condition: { type: "absent" },
  });
  if (!stored) throw new Fault("DEFECT", `an object is already at ${key}: two jobs have one id`);
}

/** False when the record was changed since it was read. */
export async function replaceJob(store: ObjectStore, record: JobRecord, etag: string): Promise<boolean> {
  const key = jobKey(record.owner, record.job_id);
  const condition = { type: "match", etag } as const;
  return (await store.put({ key, bytes: toBytes(record), mediaType: JSON_TYPE, condition })).stored;
}

/** Undefined when the owner has no such job, whoever else may have one. */
export async function getJob(store: ObjectStore, owner: string, jobId: string): Promise<StoredJob | undefined> {
  if (!isJobId(jobId)) return undefined;
  const object = await store.get(jobKey(owner, jobId), { maxBytes: MAX_ANSWER_BYTES });
  if (object === undefined) return undefined;
  return { record: parseRecord(object.bytes), etag: object.etag };
}

/** Ids of the owner's jobs, newest first. */
export async function listJobIds(
  store: ObjectStore,
  owner: string,
  page: { readonly limit: number; readonly after?: string | undefined },
): Promise<{ readonly ids: readonly string[]; readonly next: string | undefined }> {
  const prefix = `${JOBS_PREFIX}${owner}/`;
  const after = page.after === undefined ? undefined : jobKey(owner, page.after);
  const { keys, next } = await store.list(prefix, { limit: page.limit, after });
  const toId = (key: string) => key.slice(prefix.length).replace(/\.json$/, "");
  return { ids: keys.map(toId), next: next === undefined ? undefined : toId(next) };
}

/** Bytes that the report of this record takes as the answer of a Lambda; at least those of the record in the store. */
export function answerByteCount(record: JobRecord): number {
  return Buffer.byteLength(JSON.stringify(JSON.stringify(record))) + record.artifacts.length * LINK_BYTES;
}

function toBytes(record: JobRecord): Uint8Array {
  return Buffer.from(JSON.stringify(record));
}

function parseRecord(bytes: Uint8Array): JobRecord {
  try {
    return JobRecord.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  } catch (error) {
    throw new Fault("DEFECT", "a stored job record cannot be read", { cause: error });
  }
}
