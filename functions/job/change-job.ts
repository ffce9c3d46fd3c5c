import { Fault } from "../contract/fault.ts";
import type { JobRecord } from "../contract/job.ts";
import type { Clock, ObjectStore } from "../contract/ports.ts";
import { asOfNow } from "./job-record.ts";
import { getJob, replaceJob } from "./job-store.ts";

/**
 * Others write the same record at the same moment, each of them once: as many as a caller may remove files at a time.
 */
const MAX_ROUNDS = 200;

export type JobPlace = {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly owner: string;
  readonly jobId: string;
};

/**
 * Reads the job, and writes what `change` makes of its record if nobody wrote in between, else begins anew. `change` is
 * given the record as of now and answers undefined to leave it as it is. Undefined when the owner has no such job, else
 * the record that stands, with its etag.
 */
export async function changeJob(
  { store, clock, owner, jobId }: JobPlace,
  change: (record: JobRecord) => JobRecord | undefined,
): Promise<{ readonly record: JobRecord; readonly etag: string; readonly changed: boolean } | undefined> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const job = await getJob(store, owner, jobId);
    if (job === undefined) return undefined;
    const current = asOfNow(job.record, clock());
    const record = change(current);
    if (record === undefined) return { record: current, etag: job.etag, changed: false };
    const etag = await replaceJob(store, record, job.etag);
    if (etag !== undefined) return { record, etag, changed: true };
  }
  throw new Fault("DEFECT", `the record of job ${jobId} changed ${MAX_ROUNDS} times while it was to be written`);
}
