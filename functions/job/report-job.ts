import { Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { ArtifactRecord, ArtifactReport, JobList, JobRecord, JobReport, JobSummary } from "../contract/job.ts";
import type { Clock, Link, ObjectStore } from "../contract/ports.ts";
import { changeJob } from "./change-job.ts";
import { isArtifactId } from "./ids.ts";
import { asOfNow } from "./job-record.ts";
import { getJob, listJobIds, type StoredJob } from "./job-store.ts";

/** What a caller gets to see of its jobs. Another owner's job is answered like one that does not exist. */

export type ReportContext = {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** Whole days that a file is kept, then it expires. */
  readonly artifactDays: number;
};

const DAY = 24 * 3600_000;
const DEFAULT_PAGE = 20;
/** A record can have megabytes: a page is not read all at once. */
const READ_AT_ONCE = 10;

export async function reportJob(owner: string, jobId: string, context: ReportContext): Promise<Outcome<JobReport>> {
  const job = await getJob(context.store, owner, jobId);
  return job === undefined ? jobNotFound(jobId) : succeed(await toReport(job.record, context));
}

/** The report of a record, with links minted at this moment. */
export async function toReport(stored: JobRecord, context: ReportContext): Promise<JobReport> {
  const record = asOfNow(stored, context.clock());
  const { job_id, status, created_at, finished_at, error, results, usage, catalog_generation } = record;
  const artifacts = await Promise.all(record.artifacts.map((artifact) => toArtifactReport(artifact, record, context)));
  const ended = { ...(finished_at === undefined ? {} : { finished_at }), ...(error === undefined ? {} : { error }) };
  return { job_id, status, created_at, ...ended, results, artifacts, usage, catalog_generation };
}

export async function listJobs(
  owner: string,
  page: { readonly limit?: number | undefined; readonly after?: string | undefined },
  context: ReportContext,
): Promise<JobList> {
  const { store } = context;
  const { ids, next } = await listJobIds(store, owner, { limit: page.limit ?? DEFAULT_PAGE, after: page.after });
  const summaries: JobSummary[] = [];
  for (let start = 0; start < ids.length; start += READ_AT_ONCE) {
    const batch = ids.slice(start, start + READ_AT_ONCE);
    const jobs = await Promise.all(batch.map((id) => getReadable(store, owner, id)));
    summaries.push(
      ...jobs.flatMap((job) => (job === undefined ? [] : [toSummary(asOfNow(job.record, context.clock()))])),
    );
  }
  return { jobs: summaries, ...(next === undefined ? {} : { next }) };
}

/** A damaged record must not keep its owner from all others; whoever asks for that job is told. */
async function getReadable(store: ObjectStore, owner: string, jobId: string): Promise<StoredJob | undefined> {
  try {
    return await getJob(store, owner, jobId);
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}

/** A fresh link; `ARTIFACT_EXPIRED` once the file's days are over, `ARTIFACT_NOT_FOUND` when it was removed. */
export async function linkArtifact(
  owner: string,
  jobId: string,
  artifactId: string,
  context: ReportContext,
): Promise<Outcome<Link>> {
  const job = await getJob(context.store, owner, jobId);
  if (job === undefined) return jobNotFound(jobId);
  const artifact = findArtifact(job.record, artifactId);
  if (artifact === undefined) return artifactNotFound(artifactId);
  if (artifact.deleted_at !== undefined)
    return refuse("ARTIFACT_NOT_FOUND", `artifact ${artifactId} was removed at ${artifact.deleted_at}`);
  if (secondsLeft(job.record, context) <= 0) {
    return refuse(
      "ARTIFACT_EXPIRED",
      `artifact ${artifactId} is gone: files are kept ${context.artifactDays} days; run the job again`,
    );
  }
  return succeed(await mintLink(artifact, job.record, context));
}

/**
 * Removes the file. The record says so first, so that no link is minted for a file that is going; a crash in between
 * is mended by asking again.
 */
export async function deleteArtifact(
  owner: string,
  jobId: string,
  artifactId: string,
  context: ReportContext,
): Promise<Outcome<null>> {
  const { store, clock } = context;
  const job = await changeJob({ store, clock, owner, jobId }, (record) => {
    const artifact = findArtifact(record, artifactId);
    const isMarked = artifact === undefined || artifact.deleted_at !== undefined;
    return isMarked ? undefined : markDeleted(record, artifactId, context);
  });
  if (job === undefined) return jobNotFound(jobId);
  const artifact = findArtifact(job.record, artifactId);
  if (artifact === undefined) return artifactNotFound(artifactId);
  await store.delete(artifact.key);
  return succeed(null);
}

function markDeleted(record: JobRecord, artifactId: string, { clock }: ReportContext): JobRecord {
  const deleted_at = new Date(clock()).toISOString();
  const artifacts = record.artifacts.map((each) => (each.artifact_id === artifactId ? { ...each, deleted_at } : each));
  return { ...record, artifacts };
}

function findArtifact(record: JobRecord, artifactId: string): ArtifactRecord | undefined {
  return isArtifactId(artifactId) ? record.artifacts.find(({ artifact_id }) => artifact_id === artifactId) : undefined;
}

async function toArtifactReport(
  artifact: ArtifactRecord,
  record: JobRecord,
  context: ReportContext,
): Promise<ArtifactReport> {
  const { key: _, ...facts } = artifact;
  if (artifact.deleted_at !== undefined || secondsLeft(record, context) <= 0) return facts;
  const { url, expiresAt } = await mintLink(artifact, record, context);
  return { ...facts, url, expires_at: new Date(expiresAt).toISOString() };
}

/** A link never outlives its file. */
async function mintLink(artifact: ArtifactRecord, record: JobRecord, context: ReportContext): Promise<Link> {
  const seconds = Math.min(record.link_seconds, Math.max(1, secondsLeft(record, context)));
  return context.store.presign(artifact.key, { fileName: artifact.name, mediaType: artifact.media_type, seconds });
}

function secondsLeft(record: JobRecord, { clock, artifactDays }: ReportContext): number {
  // A job may have waited for days before it made them.
  const madeAt = Date.parse(record.finished_at ?? record.created_at);
  return Math.floor((madeAt + artifactDays * DAY - clock()) / 1000);
}

function toSummary({ job_id, status, created_at, usage, artifacts }: JobRecord): JobSummary {
  return { job_id, status, created_at, calls: usage.calls, artifacts: artifacts.length };
}

export function jobNotFound(jobId: string): Outcome<never> {
  return refuse("JOB_NOT_FOUND", `you have no job ${JSON.stringify(jobId.slice(0, 64))}`);
}

function artifactNotFound(artifactId: string): Outcome<never> {
  return refuse("ARTIFACT_NOT_FOUND", `the job has no artifact ${JSON.stringify(artifactId.slice(0, 32))}`);
}
