/**
 * When a server's list is fetched after its notifications. A function that is frozen between two events cannot hold a
 * timer, so the wait is a delayed message: notifications fall into buckets of one window, each bucket sends one
 * message, and whoever takes that message decides here.
 *
 * All times are the queue's own, in epoch ms, whatever the clocks of those who send and take. Nothing is lost: a
 * bucket's message is seen no sooner than a window after its first notification, so a fetch that follows it sees what
 * all of them told of; a newer bucket is noted only once its message is kept; and one that is overdue excuses nobody. A
 * record that is lost or stale causes one fetch more, never one less. Nothing starves: past the longest wait the next
 * message fetches.
 */

export type BucketRules = {
  /** Quiet that is waited for. */
  readonly windowMs: number;
  /** How long the queue holds each message back; at least the window, or a change could be missed. */
  readonly delayMs: number;
  /** How much later than due a newer bucket's message may be and still be counted on. */
  readonly graceMs: number;
};

export type DebounceRules = BucketRules & {
  /** Past this since the first notification that is not answered, quiet is no longer waited for. */
  readonly longestWaitMs: number;
};

/** A message is received again after a crash; it is among the dead letters only several times this later. */
const GRACE_MS = 30_000;

/** In seconds; `delaySeconds` is how long the refresh queue really holds a message back. */
export type BucketSeconds = { readonly debounceSeconds: number; readonly delaySeconds: number };

export function toBucketRules({ debounceSeconds, delaySeconds }: BucketSeconds): BucketRules {
  return { windowMs: toMs(debounceSeconds), delayMs: toMs(delaySeconds), graceMs: GRACE_MS };
}

export function toDebounceRules(seconds: BucketSeconds & { readonly longestWaitSeconds: number }): DebounceRules {
  return { ...toBucketRules(seconds), longestWaitMs: toMs(seconds.longestWaitSeconds) };
}

function toMs(seconds: number): number {
  return Math.round(seconds * 1000);
}

/** The bucket of a notification that the queue got at `sentAt`. */
export function bucketOf(sentAt: number, { windowMs }: BucketRules): number {
  return Math.max(0, Math.floor(sentAt / windowMs));
}

function endOf(bucket: number, { windowMs }: BucketRules): number {
  return (bucket + 1) * windowMs;
}

/** A notification that is delivered again gives the same id, so the queue drops the second message. */
export function deduplicationId(server: string, bucket: number): string {
  return `${server}:${bucket}`;
}

/** What is known of a server's notifications: the newest bucket whose message is kept, and since when one waits. */
export type DebounceRecord = { readonly newest: number; readonly pendingSince: number };

/** The record after a notification of `bucket`, got at `sentAt`, whose message is kept. */
export function noteBucket(
  record: DebounceRecord | undefined,
  { bucket, sentAt }: { readonly bucket: number; readonly sentAt: number },
  rules: BucketRules,
): DebounceRecord {
  if (record === undefined || isOverdue(record.newest, sentAt, rules)) return { newest: bucket, pendingSince: sentAt };
  return { newest: Math.max(record.newest, bucket), pendingSince: Math.min(record.pendingSince, sentAt) };
}

export type DebounceFacts = {
  readonly bucket: number;
  /** When the bucket's message was first received: no fetch that follows it began sooner. */
  readonly receivedAt: number;
  /** By the clock of whoever decides: only to tell that a time is still to come. */
  readonly now: number;
  readonly record: DebounceRecord | undefined;
  /** Every notification that the queue got before is answered by what was published. */
  readonly coveredUntil: number;
};

/** `covered`: nothing to do. `wait`: a newer message will do it. Else the list is fetched. */
export type DebounceDecision = "covered" | "wait" | "fetch";

export function decide(
  { bucket, receivedAt, now, record, coveredUntil }: DebounceFacts,
  rules: DebounceRules,
): DebounceDecision {
  // What covers more than has happened was written by a clock that has gone back since.
  if (coveredUntil <= now && endOf(bucket, rules) <= coveredUntil) return "covered";
  if (record === undefined || record.newest <= bucket) return "fetch";
  if (isOverdue(record.newest, receivedAt, rules)) return "fetch";
  const waitingSince = Math.max(record.pendingSince, coveredUntil);
  return receivedAt - waitingSince >= rules.longestWaitMs ? "fetch" : "wait";
}

function isOverdue(bucket: number, now: number, rules: BucketRules): boolean {
  return now > endOf(bucket, rules) + rules.delayMs + rules.graceMs;
}
