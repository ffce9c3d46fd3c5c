/** Times and counts that asynchronous jobs, their queue and their functions hold to together. */

/** What a worker has beyond the job's own time: to start, to store what was made and to write the record. */
export const WORKER_MARGIN_SECONDS = 60;

/** How often a job is handed to a worker before it is given up. */
export const MAX_JOB_ATTEMPTS = 5;

/** How long a message waits for a worker. */
export const JOB_WAITING_DAYS = 4;

/** How long a dead letter of it waits for whoever ends the job. */
export const JOB_DEAD_LETTER_DAYS = 14;

/** When so many days have passed since a job's message was sent, nothing will ever end the job any more. */
export const JOB_MESSAGE_DAYS = JOB_WAITING_DAYS + JOB_DEAD_LETTER_DAYS;

/** The function behind HTTP does not live so long, in ms. */
const HTTP_FUNCTION_MS = 30_000;
/** After a synchronous job's last call, for storing what it made. */
const SYNC_MARGIN_MS = 10_000;

/**
 * How long a synchronous job holds its `Idempotency-Key`, in ms: longer than the function and the job can take, so that
 * a key that is free again has nobody working under it. Whoever finds its lease over stops by itself.
 */
export function toSyncLeaseMs(jobTimeoutMs: number): number {
  return Math.max(HTTP_FUNCTION_MS, jobTimeoutMs + SYNC_MARGIN_MS);
}

/** The function that runs a job of so many seconds has so many in all. */
export function toWorkerSeconds(asyncJobSeconds: number): number {
  return asyncJobSeconds + WORKER_MARGIN_SECONDS;
}
