import { createQueueHandler } from "../functions/aws/sqs-events.ts";
import { MAX_JOB_ATTEMPTS, toWorkerSeconds } from "../functions/contract/job-times.ts";
import type { Clock, EventConsumer, EventQueue, Log, ObjectStore, Timer } from "../functions/contract/ports.ts";
import type { OperatorSettings } from "../functions/contract/settings.ts";
import { giveUpJobs } from "../functions/job/give-up-jobs.ts";
import type { createWorker } from "../functions/wiring/create-worker.ts";
import type { DeadLetter, EmbeddedEventQueue } from "./embedded-event-queue.ts";
import { type QueuePoller, startQueuePoller } from "./queue-poller.ts";
import { RETRY_SECONDS, VISIBILITY_SECONDS, waking } from "./queues.ts";

/** What the cloud's jobs queue and its two functions do for an asynchronous job, on one machine. */

export type JobPathOptions = {
  readonly settings: OperatorSettings;
  readonly store: ObjectStore;
  readonly jobs: EmbeddedEventQueue;
  readonly work: ReturnType<typeof createWorker>;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly log: Log;
};

export type JobPath = {
  /** The jobs queue, whose messages are taken at once. */
  readonly jobs: EventQueue;
  /** Resolves once what is under way has ended; what is queued stays for the next start. */
  close(): Promise<void>;
};

const DEAD_JOBS_EVERY_MS = 1_000;
const DEAD_JOBS_AT_ONCE = 10;
const DEAD_JOBS_RETRY_MS = 30_000;

export function startJobPath(options: JobPathOptions): JobPath {
  const { settings, jobs, work, clock, timer, log } = options;
  const common = { visibilitySeconds: VISIBILITY_SECONDS, retrySeconds: RETRY_SECONDS, clock, timer, log };
  const worker = startQueuePoller({
    ...common,
    consumer: jobs,
    handler: createQueueHandler({ log, process: work }),
    queueName: "jobs",
    batchSize: 1,
    concurrency: settings.asyncJobsAtOnce,
    functionSeconds: toWorkerSeconds(settings.asyncJobSeconds),
  });
  const deadJobs = startDeadJobs(options);
  return {
    jobs: waking(jobs, worker),
    close: async () => {
      await Promise.all([worker.close(), deadJobs.close()]);
    },
  };
}

/**
 * Dead letters stay where `skillbroker dead-letters` shows them; one whose job could not be ended is looked at again
 * later.
 */
function startDeadJobs(options: JobPathOptions): Pick<QueuePoller, "close"> {
  const { jobs, store, clock, timer, log } = options;
  return startQueuePoller({
    consumer: readDeadLetters(jobs, clock),
    handler: createQueueHandler({
      log,
      process: (messages) => giveUpJobs(messages, { store, clock, log, maxAttempts: MAX_JOB_ATTEMPTS }),
    }),
    queueName: "dead-jobs",
    batchSize: DEAD_JOBS_AT_ONCE,
    functionSeconds: 30,
    visibilitySeconds: VISIBILITY_SECONDS,
    idleMs: DEAD_JOBS_EVERY_MS,
    clock,
    timer,
    log,
  });
}

/** A letter that was removed is done with for this process; the job says so for the next one. */
function readDeadLetters(jobs: Pick<EmbeddedEventQueue, "deadLetters">, clock: Clock): EventConsumer {
  const hiddenUntil = new Map<string, number>();
  return {
    receive: async ({ max }) => {
      const letters = jobs.deadLetters();
      const present = new Set(letters.map(({ id }) => id));
      for (const id of hiddenUntil.keys()) if (!present.has(id)) hiddenUntil.delete(id);
      const due = letters.filter(({ id }) => clock() >= (hiddenUntil.get(id) ?? 0)).slice(0, max);
      for (const { id } of due) hiddenUntil.set(id, clock() + DEAD_JOBS_RETRY_MS);
      return due.map(toReceived);
    },
    remove: async (receipt) => {
      hiddenUntil.set(receipt, Number.POSITIVE_INFINITY);
      return true;
    },
    hide: async () => true,
  };
}

function toReceived({ id, body, sentAt, receiveCount }: DeadLetter) {
  return { id, receipt: id, body, sentAt, firstReceivedAt: sentAt, receiveCount };
}
