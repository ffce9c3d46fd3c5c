import type { Catalog } from "../catalog/catalog.ts";
import { Fault } from "../contract/fault.ts";
import type { JobRecord } from "../contract/job.ts";
import type { Limits } from "../contract/limits.ts";
import type { Clock } from "../contract/ports.ts";
import { type JobIdentity, toFailedRecord, toQueuedRecord } from "./job-record.ts";

/**
 * What becomes of a job that broke off while it called tools of servers: a second run could do twice what was asked
 * once.
 */

export function interrupted(): Fault {
  const message =
    "the job broke off while it called tools of MCP servers, and nobody can tell which calls were done: it is not run again; look what they did, then post it with a new key";
  return new Fault("JOB_INTERRUPTED", message);
}

/** For a job that has no record yet. */
export function toInterruptedRecord(
  job: JobIdentity,
  { catalog, limits, clock }: { readonly catalog: Catalog; readonly limits: Limits; readonly clock: Clock },
): JobRecord {
  return toFailedRecord(toQueuedRecord({ ...job, limits, catalog }), interrupted(), clock());
}
