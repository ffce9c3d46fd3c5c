import { createQueueHandler } from "../functions/aws/sqs-events.ts";
import type { Installation } from "../functions/catalog/catalog.ts";
import type { Clock, EventQueue, Log, ObjectStore, Timer, ToolSource } from "../functions/contract/ports.ts";
import { delayOf, LISTED_AT_ONCE, LISTING_DEADLINE_MS, PUBLISHING_MS } from "../functions/contract/refresh-limits.ts";
import type { OperatorSettings } from "../functions/contract/settings.ts";
import { toDebounceRules } from "../functions/refresh/debounce.ts";
import { reconcile } from "../functions/refresh/reconcile.ts";
import { takeNotifications } from "../functions/refresh/take-notifications.ts";
import { takeRefreshes } from "../functions/refresh/take-refreshes.ts";
import { startQueuePoller } from "./queue-poller.ts";
import { type LocalQueues, RETRY_SECONDS, VISIBILITY_SECONDS, waking } from "./queues.ts";

/** What the cloud's queues, functions and schedule do between a notification and a catalog, on one machine. */

export type RefreshPathOptions = {
  readonly installed: Installation;
  readonly settings: OperatorSettings;
  readonly store: ObjectStore;
  readonly toolSource: ToolSource;
  readonly queues: LocalQueues;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly log: Log;
};

/** A storm is noted in few transactions, so that its newest bucket is known in time. */
const NOTIFICATIONS_AT_ONCE = 100;
/** Servers whose lists are fetched at the same time, each by a message of its own. */
const REFRESHES_AT_ONCE = 8;
const RECONCILE_EVERY_MS = 60_000;

export type RefreshPath = {
  /** The notifications queue, whose messages are taken at once. */
  readonly notifications: EventQueue;
  /** Resolves once what is under way has ended; what is queued stays for the next start. */
  close(): Promise<void>;
};

export function startRefreshPath(options: RefreshPathOptions): RefreshPath {
  const { installed, settings, store, queues, clock, timer, log } = options;
  const { debounceSeconds, longestWaitSeconds } = settings;
  const rules = toDebounceRules({ debounceSeconds, longestWaitSeconds, delaySeconds: delayOf(debounceSeconds) });
  const context = {
    ...options,
    refreshQueue: queues.refreshes,
    rules,
    servers: new Set(installed.servers.map(({ name }) => name)),
    maxListAgeMs: settings.maxListAgeSeconds * 1000,
    listTimeoutMs: LISTING_DEADLINE_MS,
    refreshTimeoutMs: LISTING_DEADLINE_MS,
    publishTimeoutMs: PUBLISHING_MS,
    listedAtOnce: LISTED_AT_ONCE,
  };
  const common = { visibilitySeconds: VISIBILITY_SECONDS, retrySeconds: RETRY_SECONDS, clock, timer, log };
  const notify = startQueuePoller({
    ...common,
    consumer: queues.notifications,
    handler: createQueueHandler({ log, process: (messages) => takeNotifications(messages, context) }),
    queueName: "notifications",
    batchSize: NOTIFICATIONS_AT_ONCE,
    functionSeconds: 30,
  });
  const refresh = startQueuePoller({
    ...common,
    consumer: queues.refreshes,
    handler: createQueueHandler({ log, process: (messages) => takeRefreshes(messages, context) }),
    queueName: "refreshes.fifo",
    batchSize: 1,
    concurrency: REFRESHES_AT_ONCE,
    functionSeconds: 60,
  });
  const notifications = waking(queues.notifications, notify);
  const schedule = startSchedule(RECONCILE_EVERY_MS, options, () =>
    reconcile({
      servers: installed.servers,
      store,
      notifications,
      clock,
      log,
      due: { intervalMs: settings.reconcileSeconds * 1000, maxListAgeMs: settings.maxListAgeSeconds * 1000 },
    }),
  );
  return {
    notifications,
    close: async () => {
      await schedule.close();
      await Promise.all([notify.close(), refresh.close()]);
    },
  };
}

/** At once, and again and again. What fails is logged and tried again at the next time. */
function startSchedule(
  everyMs: number,
  { timer, log }: Pick<RefreshPathOptions, "timer" | "log">,
  act: () => Promise<unknown>,
): { close(): Promise<void> } {
  let pending: { cancel(): void } | undefined;
  let closed = false;
  const run = async () => {
    try {
      await act();
    } catch (error) {
      log("error", "schedule failed", { error });
    }
    if (!closed) {
      pending = timer(() => {
        running = run();
      }, everyMs);
    }
  };
  let running = run();
  return {
    close: async () => {
      closed = true;
      pending?.cancel();
      await running;
    },
  };
}
