import { Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { JobRecord } from "../contract/job.ts";
import type { Clock, Log, ObjectStore } from "../contract/ports.ts";
import { changeJob } from "./change-job.ts";
import { isEnded, toFailedRecord } from "./job-record.ts";
import { deleteRequest } from "./job-store.ts";
import { logJob } from "./keep-job.ts";
import { jobNotFound } from "./report-job.ts";

/**
 * Ends a job that is queued or running: it is failed from now on, whatever a worker is doing. The worker notices before
 * its next call and when it wants to write the record, and drops what it made. Cancelling twice is cancelling once.
 */
export async function cancelJob(
  owner: string,
  jobId: string,
  { store, clock, log }: { readonly store: ObjectStore; readonly clock: Clock; readonly log: Log },
): Promise<Outcome<JobRecord>> {
  const fault = new Fault("JOB_CANCELLED", "the job was cancelled by its owner");
  const job = await changeJob({ store, clock, owner, jobId }, (record) =>
    isEnded(record) ? undefined : toFailedRecord(record, fault, clock()),
  );
  if (job === undefined) return jobNotFound(jobId);
  const { record } = job;
  if (record.error?.code !== "JOB_CANCELLED") {
    return refuse(
      "JOB_FINISHED",
      `the job has ended (${record.status}) and cannot be cancelled; its files can be deleted`,
    );
  }
  if (job.changed) logJob(record, "async", log);
  await deleteRequest(store, owner, jobId);
  return succeed(record);
}
