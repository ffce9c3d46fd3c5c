/**
 * Where things are in the object store, and for how long: one place for the code, the bucket and one machine's store.
 */

/** Begins the key of every file that a job made. */
export const ARTIFACTS_PREFIX = "artifacts/";
/** Begins the key of every job record. */
export const JOBS_PREFIX = "jobs/";
/** Begins the key of every asynchronous job as it was sent, until it has ended. */
export const REQUESTS_PREFIX = "requests/";
/** Begins the key of what is known of every `Idempotency-Key`. */
export const IDEMPOTENCY_PREFIX = "idempotency/";
/** Key of the published catalog; it stays until another one takes its place. */
export const CATALOG_KEY = "catalog/current.json";
/** Begins the key of every server's debounce record. */
export const DEBOUNCE_PREFIX = "debounce/";

/** Days that a record outlives its files, so that a report can still say what they were. */
const RECORD_DAYS = 30;
/**
 * Days after its last notification that a server's debounce record goes; a lost one causes one refresh more, never one
 * less.
 */
const DEBOUNCE_DAYS = 7;
/**
 * Longer than a job can wait in its queue and among the dead letters after that, also when its message is sent once
 * more.
 */
const REQUEST_DAYS = 30;
/** Days in which a repeated `Idempotency-Key` gets the first answer. */
export const IDEMPOTENCY_DAYS = 7;

export type LifecycleRule = { readonly prefix: string; readonly days: number };

/** What is removed by itself, how many days after it was written. */
export function toLifecycle(artifactDays: number): readonly LifecycleRule[] {
  return [
    { prefix: ARTIFACTS_PREFIX, days: artifactDays },
    { prefix: JOBS_PREFIX, days: artifactDays + RECORD_DAYS },
    { prefix: DEBOUNCE_PREFIX, days: DEBOUNCE_DAYS },
    { prefix: REQUESTS_PREFIX, days: REQUEST_DAYS },
    { prefix: IDEMPOTENCY_PREFIX, days: IDEMPOTENCY_DAYS },
  ];
}
