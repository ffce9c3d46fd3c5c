import { Fault } from "../contract/fault.ts";
import type { JobRecord } from "../contract/job.ts";
import type { ObjectStore } from "../contract/ports.ts";
import { getJob, replaceJob } from "./job-store.ts";

/** Others write the same record at the same moment: a worker, a caller who cancels, one who removes a file. */
const MAX_ROUNDS = 10;

/**
 * Reads the job, and writes what `change` makes of its record if nobody wrote in between, else begins anew. `change`
 * answers undefined to leave the record as it is. Undefined when the owner has no such job, else the record that stands,
 * with its etag.
 */
export async function changeJob(
  { store, owner, jobId }: { readonly store: ObjectStore; readonly owner: string; readonly jobId: string },
  change: (record: JobRecord) => JobRecord | undefined,
): Promise<{ readonly record: JobRecord; readonly etag: string; readonly changed: boolean } | undefined> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const job = await getJob(store, owner, jobId);
    if (job === undefined) return undefined;
    const record = change(job.record);
    if (record === undefined) return { ...job, changed: false };
    const etag = await replaceJob(store, record, job.etag);
    if (etag !== undefined) return { record, etag, changed: true };
  }
  throw new Fault("DEFECT", `the record of job ${jobId} changed ${MAX_ROUNDS} times while it was to be written`);
}
