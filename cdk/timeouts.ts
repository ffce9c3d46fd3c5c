/**
 * Each level ends before the one above gives up on it, so that it can still answer: call < job < function <
 * integration. The integration also waits for a cold start, which the function's own timeout does not count; the gap
 * between them is for that.
 */

/** An HTTP API waits 30 s at most; 29 is what it can be set to. */
export const INTEGRATION_SECONDS = 29;

export const HTTP_SECONDS = 26;

/** Leaves the function time to store what the job made and to write its record, while the store answers promptly. */
export const MAX_JOB_TIMEOUT_MS = 22_000;

/**
 * Behind the queues: listing < function < visibility of the message. A message that came back while its function still
 * ran would be worked on twice.
 */

export const NOTIFY_SECONDS = 30;

/** Leaves a quarter of a minute after the listing deadline to publish the catalog, a lost compare-and-swap included. */
export const REFRESH_SECONDS = 60;

/** It runs every minute; two runs at a time would ask for everything twice. */
export const RECONCILE_SECONDS = 30;

/** Each of a batch takes a few requests to the store. */
export const DEAD_JOBS_SECONDS = 30;

/** AWS's own advice, beside the batching window: a batch that was throttled is tried again several times within it. */
const FUNCTION_TIMEOUTS_A_VISIBILITY = 6;

/** How long a message stays hidden whose function has `functionSeconds` and gets a batch without waiting for more. */
export function toVisibilitySeconds(functionSeconds: number): number {
  return FUNCTION_TIMEOUTS_A_VISIBILITY * functionSeconds;
}
