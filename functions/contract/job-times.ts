/** Times and counts that asynchronous jobs, their queue and their functions hold to together. */

/** What a worker has beyond the job's own time: to start, to store what was made and to write the record. */
export const WORKER_MARGIN_SECONDS = 60;

/** How often a job is handed to a worker before it is given up. */
export const MAX_JOB_ATTEMPTS = 5;

/** How long a job waits for a worker; one that waited longer was lost on the way into the queue. */
export const JOB_WAITING_DAYS = 4;

/**
 * How long a synchronous job holds its `Idempotency-Key`, in ms: longer than the function that runs it can live, so that a
 * key that is free again has nobody working under it.
 */
export const SYNC_LEASE_MS = 30_000;

/** The function that runs a job of so many seconds has so many in all. */
export function toWorkerSeconds(asyncJobSeconds: number): number {
  return asyncJobSeconds + WORKER_MARGIN_SECONDS;
}
