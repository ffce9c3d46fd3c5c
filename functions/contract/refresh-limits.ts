/** Times that the functions of the refresh path, their queues and their timeouts hold to together. */

/** All lists that one refresh fetches, in ms; what is left of the function's timeout is for publishing. */
export const LISTING_DEADLINE_MS = 45_000;

/** The same while a caller of `POST /v1/refreshes` waits, whom API Gateway sends away after 30 s. */
export const REQUESTED_LISTING_DEADLINE_MS = 20_000;

/** What publishing may take after that, in ms, while others publish as well. */
export const PUBLISHING_MS = 10_000;
export const REQUESTED_PUBLISHING_MS = 4_000;

/** Servers that one refresh asks at the same time. */
export const LISTED_AT_ONCE = 8;

/**
 * Half a second, or the window where that is less: time for a notification to be sent on before its bucket is looked
 * at.
 */
const MAX_SLACK_SECONDS = 0.5;

/**
 * How long the refresh queue holds a message back, in seconds. Never less than the window: a message that came before
 * its bucket's end would leave the events after it without a refresh.
 */
export function delayOf(debounceSeconds: number): number {
  return debounceSeconds + Math.min(debounceSeconds, MAX_SLACK_SECONDS);
}

/** The same in whole seconds, since SQS takes no others. */
export function toDelaySeconds(debounceSeconds: number): number {
  return Math.ceil(delayOf(debounceSeconds));
}
