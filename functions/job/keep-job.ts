import type { Artifact } from "../contract/artifact.ts";
import { type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { ArtifactRecord, JobRecord } from "../contract/job.ts";
import type { Log, ObjectStore } from "../contract/ports.ts";
import { type FinishedJob, toRecord } from "./job-record.ts";
import { answerByteCount, artifactKey, MAX_ANSWER_BYTES, putArtifact } from "./job-store.ts";

/** What is left of a job that ran: its files, and the record that names them. */

export type MadeJob = { readonly record: JobRecord; readonly files: readonly MadeArtifact[] };
type MadeArtifact = { readonly record: ArtifactRecord; readonly artifact: Artifact };

/** `OUTPUT_TOO_LARGE` when the report could not be answered. Nothing is stored yet. */
export function makeJob(job: FinishedJob): Outcome<MadeJob> {
  const files = nameArtifacts(job);
  const record = toRecord(
    job,
    files.map(({ record }) => record),
  );
  const bytes = answerByteCount(record);
  if (bytes <= MAX_ANSWER_BYTES) return succeed({ record, files });
  const message = `the job's report has ${bytes} bytes, at most ${MAX_ANSWER_BYTES} fit an answer; make fewer calls`;
  return refuse("OUTPUT_TOO_LARGE", message);
}

/** To be done before the record is written: a crash in between leaves files that nothing refers to and that expire. */
export async function putFiles({ files }: MadeJob, store: ObjectStore): Promise<void> {
  await Promise.all(files.map(({ record: { key }, artifact }) => putArtifact(store, key, artifact)));
}

/** a1, a2, … in the order of the calls. */
function nameArtifacts(job: FinishedJob): readonly MadeArtifact[] {
  const made = job.ran.flatMap(({ call, ran: { outcome } }) =>
    outcome.ok ? outcome.value.artifacts.map((artifact) => ({ call, artifact })) : [],
  );
  return made.map(({ call, artifact }, index) => {
    const { name, mediaType, bytes, sha256 } = artifact;
    const artifact_id = `a${index + 1}`;
    const key = artifactKey(job, artifact_id, artifact);
    const facts = { name, media_type: mediaType, size_bytes: bytes.length, sha256 };
    return { record: { artifact_id, call_id: call.id, ...facts, key }, artifact };
  });
}

/**
 * One line a job that ended here, from which the jobs' metrics are counted; one that was given up has a line of its
 * own.
 */
export function logJob(record: JobRecord, mode: "sync" | "async", log: Log): void {
  const { job_id, status, artifacts, usage, error } = record;
  log("info", "job", {
    job_id,
    status,
    mode,
    calls: usage.calls,
    artifacts: artifacts.length,
    artifact_bytes: usage.artifact_bytes,
    duration_ms: usage.duration_ms,
    ...(error === undefined ? {} : { code: error.code }),
  });
}
