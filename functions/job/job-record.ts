import type { CallOutcome } from "../broker/broker.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { Fault, toWireFault } from "../contract/fault.ts";
import type { ArtifactRecord, CallAudit, CallResult, JobRecord } from "../contract/job.ts";
import { JOB_MESSAGE_DAYS } from "../contract/job-times.ts";
import type { Limits } from "../contract/limits.ts";
import type { JsonObject } from "../contract/tool.ts";
import type { NamedCall } from "./plan-job.ts";

/** What is kept of a job: while it waits, while it runs, and for good. */

const DAY = 24 * 3600_000;

export type JobIdentity = {
  readonly owner: string;
  readonly jobId: string;
  /** Epoch ms; what a handler takes for now, so that a job that is run again makes the same files. */
  readonly createdAt: number;
};

/** Pointer into the job that was sent, for a pointer into the arguments of one call. */
export function argumentPath(index: number, path: string): string {
  return `/calls/${index}/arguments${path}`;
}

export type RanCall = { readonly call: NamedCall; readonly ran: CallOutcome };

export type FinishedJob = JobIdentity & {
  /** Epoch ms, as is `finishedAt`. */
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly ran: readonly RanCall[];
  readonly limits: Limits;
  readonly catalog: Catalog;
};

/** The record: what the report shows, and an audit of digests instead of contents. */
export function toRecord(job: FinishedJob, artifacts: readonly ArtifactRecord[]): JobRecord {
  const { startedAt, finishedAt, ran } = job;
  const succeeded = ran.filter(({ ran: { outcome } }) => outcome.ok).length;
  const audit = ran.map((each) => toAudit(each));
  return {
    ...toQueuedRecord(job),
    status: succeeded === ran.length ? "succeeded" : succeeded === 0 ? "failed" : "partial",
    finished_at: new Date(finishedAt).toISOString(),
    results: ran.map((each, index) => toResult(each, index, artifacts)),
    artifacts: [...artifacts],
    usage: {
      calls: ran.length,
      duration_ms: Math.max(0, Math.round(finishedAt - startedAt)),
      output_bytes: audit.reduce((sum, { output_bytes }) => sum + output_bytes, 0),
      artifact_bytes: audit.reduce((sum, { artifact_bytes }) => sum + artifact_bytes, 0),
    },
    audit,
  };
}

/** A job of which nothing ran yet. */
export function toQueuedRecord(
  job: JobIdentity & { readonly limits: Pick<Limits, "link_seconds">; readonly catalog: Pick<Catalog, "generation"> },
): JobRecord {
  return {
    version: 1,
    job_id: job.jobId,
    owner: job.owner,
    status: "queued",
    created_at: new Date(job.createdAt).toISOString(),
    results: [],
    artifacts: [],
    usage: { calls: 0, duration_ms: 0, output_bytes: 0, artifact_bytes: 0 },
    catalog_generation: job.catalog.generation,
    link_seconds: job.limits.link_seconds,
    audit: [],
  };
}

/** The job ends here, for this reason; `now` in epoch ms. */
export function toFailedRecord({ lease: _, ...record }: JobRecord, fault: Fault, now: number): JobRecord {
  return { ...record, status: "failed", finished_at: new Date(now).toISOString(), error: toWireError(fault) };
}

export function isEnded({ status }: JobRecord): boolean {
  return status !== "queued" && status !== "running";
}

/** Whether somebody may be working on it at this moment. */
export function isHeld({ lease }: JobRecord, now: number): boolean {
  return lease !== undefined && Date.parse(lease.until) > now;
}

/**
 * The record as everybody sees it: once no message can tell of the job any more and nobody holds it, it has failed, and
 * stays so. Its message was never sent, or was lost with its queue.
 */
export function asOfNow(record: JobRecord, now: number): JobRecord {
  if (isEnded(record) || isHeld(record, now)) return record;
  const lostAt = Date.parse(record.sent_at ?? record.created_at) + JOB_MESSAGE_DAYS * DAY;
  if (now <= lostAt) return record;
  const message = "the job was lost before it ended; post it again, with a new key if it had one";
  return toFailedRecord(record, new Fault("JOB_INTERRUPTED", message), lostAt);
}

function toWireError(fault: Fault): JobRecord["error"] {
  const { code, message, errors } = toWireFault(fault);
  return { code, message, ...(errors === undefined ? {} : { errors: [...errors] }) };
}

function toResult(
  { call, ran: { outcome } }: RanCall,
  index: number,
  artifacts: readonly ArtifactRecord[],
): CallResult {
  const named = { call_id: call.id, tool: call.ref };
  if (!outcome.ok) {
    const { code, message, errors } = toWireFault(outcome.fault);
    const located = errors?.map(({ path, message }) => ({ path: argumentPath(index, path), message }));
    return { ...named, ok: false, error: { code, message, ...(located === undefined ? {} : { errors: located }) } };
  }
  const ids = artifacts.filter(({ call_id }) => call_id === call.id).map(({ artifact_id }) => artifact_id);
  return { ...named, ok: true, output: { ...outcome.value.output, ...toArtifactIds(ids) } };
}

/** One file is named as such; several are listed in the order in which the answer's content has them. */
function toArtifactIds(ids: readonly string[]): JsonObject {
  if (ids.length === 0) return {};
  return ids.length === 1 ? { artifact_id: ids[0] } : { artifact_ids: ids };
}

function toAudit({ call, ran }: RanCall): CallAudit {
  const { outcome } = ran;
  return {
    call_id: call.id,
    ref: call.ref,
    ...(ran.definitionDigest === undefined ? {} : { definition_digest: ran.definitionDigest }),
    arguments_digest: ran.argumentsDigest,
    outcome: outcome.ok ? "ok" : outcome.fault.code,
    duration_ms: ran.durationMs,
    output_bytes: outcome.ok ? outcome.value.outputBytes : 0,
    artifact_bytes: outcome.ok ? outcome.value.artifacts.reduce((sum, { bytes }) => sum + bytes.length, 0) : 0,
  };
}
