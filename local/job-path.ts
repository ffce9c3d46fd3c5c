import { createQueueHandler } from "../functions/aws/sqs-events.ts";
import { MAX_JOB_ATTEMPTS, toWorkerSeconds } from "../functions/contract/job-times.ts";
import type { Clock, EventQueue, Log, ObjectStore, Timer } from "../functions/contract/ports.ts";
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

/** How long a job that was taken is a worker's own: no message is handed out again before that. */
export const LOCAL_LEASE_MS = VISIBILITY_SECONDS * 1000;

const DEAD_JOBS_EVERY_MS = 1_000;
const DEAD_JOBS_AT_ONCE = 10;

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

/** Dead letters stay where `skillbroker dead-letters` shows them; each is looked at once. */
function startDeadJobs(options: JobPathOptions): Pick<QueuePoller, "close"> {
  const { jobs, store, clock, timer, log } = options;
  const seen = new Set<string>();
  return startQueuePoller({
    consumer: {
      receive: async ({ max }) =>
        jobs
          .deadLetters()
          .filter(({ id }) => !seen.has(id))
          .slice(0, max)
          .map(toReceived),
      remove: async (receipt) => {
        seen.add(receipt);
        return true;
      },
      hide: async () => true,
    },
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

function toReceived({ id, body, sentAt, receiveCount }: DeadLetter) {
  return { id, receipt: id, body, sentAt, firstReceivedAt: sentAt, receiveCount };
}
