/**
 * Each level ends before the one above gives up on it, so that it can still answer: call < job < function <
 * integration. The integration also waits for a cold start, which the function's own timeout does not count; the gap
 * between them is for that.
 */

/** An HTTP API waits 30 s at most; 29 is what it can be set to. */
export const INTEGRATION_SECONDS = 29;

export const FUNCTION_SECONDS = 26;

/** Leaves the function time to store what the job made and to write its record, while the store answers promptly. */
export const MAX_JOB_TIMEOUT_MS = 22_000;
