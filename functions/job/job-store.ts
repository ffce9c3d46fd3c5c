import { ARTIFACT_EXTENSIONS, type Artifact } from "../contract/artifact.ts";
import { Fault } from "../contract/fault.ts";
import { JobRecord, JobRequest } from "../contract/job.ts";
import type { ObjectStore, PutCondition } from "../contract/ports.ts";
import { MAX_HTTP_BODY_BYTES } from "../contract/product.ts";
import { ARTIFACTS_PREFIX, JOBS_PREFIX, REQUESTS_PREFIX } from "../contract/store-layout.ts";
import { isJobId } from "./ids.ts";
import { JSON_TYPE, parseStored, toBytes } from "./stored-json.ts";

/**
 * Jobs and artifacts in the object store. Every key has its owner before its id, so that one caller's key can never
 * name another's object, and holds ids only: a file name with `+`, `%` or `..` in a key breaks links and events.
 */

/**
 * A synchronous Lambda answers with 6,291,556 bytes at most, and the report is a JSON text inside the JSON of the
 * answer, where a quote or a backslash takes two bytes. What is left is for headers.
 */
export const MAX_ANSWER_BYTES = 6_000_000;
/** Allowed for the link that a report adds to each file. */
const LINK_BYTES = 2_500;
/** Written again as JSON, a body can be longer than it was sent, at the most `1e20,` as `100000000000000000000,`. */
const MAX_REQUEST_BYTES = 5 * MAX_HTTP_BODY_BYTES;

export type StoredJob = { readonly record: JobRecord; readonly etag: string };

export function jobKey(owner: string, jobId: string): string {
  return `${JOBS_PREFIX}${owner}/${jobId}.json`;
}

/** Digits of a file's SHA-256 in its key: the same key is the same bytes, made by a run of the job before. */
const CONTENT_DIGITS = 32;

export function artifactKey(
  { owner, jobId }: { readonly owner: string; readonly jobId: string },
  artifactId: string,
  { sha256, mediaType }: Pick<Artifact, "sha256" | "mediaType">,
): string {
  const extension = ARTIFACT_EXTENSIONS.get(mediaType) ?? "bin";
  return `${ARTIFACTS_PREFIX}${owner}/${jobId}-${artifactId}-${sha256.slice(0, CONTENT_DIGITS)}.${extension}`;
}

/** Does nothing when the file is there: its key says what is in it. */
export async function putArtifact(store: ObjectStore, key: string, { bytes, mediaType }: Artifact): Promise<void> {
  await store.put({ key, bytes, mediaType, condition: { type: "absent" } });
}

/** The record's etag; undefined when the job has a record already. */
export async function putNewJob(store: ObjectStore, record: JobRecord): Promise<string | undefined> {
  return putJob(store, record, { type: "absent" });
}

/** The record that stands, and whether it is this one: somebody who had the same job may have written one first. */
export async function keepFirstJob(
  store: ObjectStore,
  record: JobRecord,
): Promise<{ readonly record: JobRecord; readonly isNew: boolean }> {
  if ((await putNewJob(store, record)) !== undefined) return { record, isNew: true };
  const first = await getJob(store, record.owner, record.job_id);
  if (first !== undefined) return { record: first.record, isNew: false };
  throw new Fault("DEFECT", `the record of job ${record.job_id} was there and is gone`);
}

/** The new etag; undefined when the record was changed since it was read. */
export async function replaceJob(store: ObjectStore, record: JobRecord, etag: string): Promise<string | undefined> {
  return putJob(store, record, { type: "match", etag });
}

async function putJob(store: ObjectStore, record: JobRecord, condition: PutCondition): Promise<string | undefined> {
  const key = jobKey(record.owner, record.job_id);
  const put = await store.put({ key, bytes: toBytes(record), mediaType: JSON_TYPE, condition });
  return put.stored ? put.etag : undefined;
}

/** Whether the record is still the one with this etag. */
export async function isUnchanged(store: ObjectStore, record: JobRecord, etag: string): Promise<boolean> {
  const found = await store.getUnless(etag, jobKey(record.owner, record.job_id), { maxBytes: MAX_ANSWER_BYTES });
  return found === "unchanged";
}

function requestKey(owner: string, jobId: string): string {
  return `${REQUESTS_PREFIX}${owner}/${jobId}.json`;
}

/** What an asynchronous job was asked to do, for the worker that takes it. */
export async function putRequest(store: ObjectStore, owner: string, jobId: string, request: JobRequest): Promise<void> {
  await store.put({ key: requestKey(owner, jobId), bytes: toBytes(request), mediaType: JSON_TYPE });
}

export async function getRequest(store: ObjectStore, owner: string, jobId: string): Promise<JobRequest | undefined> {
  const object = await store.get(requestKey(owner, jobId), { maxBytes: MAX_REQUEST_BYTES });
  return object === undefined ? undefined : parseStored(JobRequest, object.bytes, "job request");
}

export async function deleteRequest(store: ObjectStore, owner: string, jobId: string): Promise<void> {
  await store.delete(requestKey(owner, jobId));
}

/** Undefined when the owner has no such job, whoever else may have one. */
export async function getJob(store: ObjectStore, owner: string, jobId: string): Promise<StoredJob | undefined> {
  if (!isJobId(jobId)) return undefined;
  const object = await store.get(jobKey(owner, jobId), { maxBytes: MAX_ANSWER_BYTES });
  if (object === undefined) return undefined;
  return { record: parseStored(JobRecord, object.bytes, "job record"), etag: object.etag };
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
