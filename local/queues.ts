import { MAX_JOB_ATTEMPTS } from "../functions/contract/job-times.ts";
import type { Clock, EventQueue, Log } from "../functions/contract/ports.ts";
import { delayOf } from "../functions/contract/refresh-limits.ts";
import type { OperatorSettings } from "../functions/contract/settings.ts";
import { type EmbeddedEventQueue, openEmbeddedEventQueue } from "./embedded-event-queue.ts";
import type { QueuePoller } from "./queue-poller.ts";

/** The queues of the stack on one machine. */

export type LocalQueues = {
  readonly notifications: EmbeddedEventQueue;
  readonly refreshes: EmbeddedEventQueue;
  readonly jobs: EmbeddedEventQueue;
  close(): void;
};

/**
 * Short, since a message is hidden further and further while it is worked on: what a killed process held is back soon.
 */
export const VISIBILITY_SECONDS = 5;
/** When a message that failed comes again. */
export const RETRY_SECONDS = 1;

export function openLocalQueues(options: {
  readonly directory: string;
  readonly settings: Pick<OperatorSettings, "debounceSeconds">;
  readonly clock: Clock;
  readonly log: Log;
}): LocalQueues {
  const { directory, settings, clock, log } = options;
  const common = { directory, clock, log, visibilitySeconds: VISIBILITY_SECONDS, maxReceives: MAX_JOB_ATTEMPTS };
  const notifications = openEmbeddedEventQueue({ ...common, name: "notifications", fifo: false, delaySeconds: 0 });
  const delaySeconds = delayOf(settings.debounceSeconds);
  const refreshes = openEmbeddedEventQueue({ ...common, name: "refreshes", fifo: true, delaySeconds });
  const jobs = openEmbeddedEventQueue({ ...common, name: "jobs", fifo: false, delaySeconds: 0 });
  const close = () => {
    for (const queue of [notifications, refreshes, jobs]) queue.close();
  };
  return { notifications, refreshes, jobs, close };
}

/** Looked for at once: a storm's messages then come in the order and at the pace of their sending. */
export function waking(queue: EventQueue, poller: Pick<QueuePoller, "wake">): EventQueue {
  return {
    send: async (message) => {
      await queue.send(message);
      poller.wake();
    },
  };
}
