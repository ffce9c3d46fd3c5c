import { randomUUID } from "node:crypto";
import type { QueueHandler } from "../functions/aws/sqs-events.ts";
import type { Clock, EventConsumer, Log, ReceivedMessage, Timer } from "../functions/contract/ports.ts";
import { toLambdaContext } from "./lambda-context.ts";
import { readBatchResponse, toSqsEvent } from "./queue-event.ts";

/**
 * What Lambda's event source mapping does in the cloud: takes batches from a queue to a handler, removes what was done
 * and lets the rest come again. A few batches at a time, as Lambda runs several instances of a function, so that a slow
 * one holds up nobody but its own group. While the handler works its messages are hidden further and further, so that
 * the visibility timeout can be short and what a killed process had in hand comes back soon.
 */

export type QueuePollerOptions = {
  readonly consumer: EventConsumer;
  readonly handler: QueueHandler;
  readonly queueName: string;
  readonly batchSize: number;
  /** Batches that are worked on at the same time; 1 when left out. */
  readonly concurrency?: number;
  /** Of the queue. */
  readonly visibilitySeconds: number;
  /** When a failed message comes again; after the visibility timeout when left out. */
  readonly retrySeconds?: number | undefined;
  /** Told to the handler as the time that it has; nobody stops it. */
  readonly functionSeconds: number;
  /** Between two looks into an empty queue. */
  readonly idleMs?: number | undefined;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly log: Log;
};

export type QueuePoller = {
  /** Looks into the queue at once: for whoever has just sent something. */
  wake(): void;
  /** Resolves once the batches that are worked on are done; no other is begun. */
  close(): Promise<void>;
};

const IDLE_MS = 50;
/** A queue that cannot be read is not asked, and not complained of, twenty times a second. */
const PAUSE_AFTER_FAILURE_MS = 1000;
/** Two beats may be late or fail before a message is handed out again. */
const BEATS_A_VISIBILITY = 3;

/** Never stops by an error: it is logged, and the loop goes on. */
export function startQueuePoller(options: QueuePollerOptions): QueuePoller {
  const { idleMs = IDLE_MS, concurrency = 1 } = options;
  const pauses = { worked: 0, idle: idleMs, failed: PAUSE_AFTER_FAILURE_MS } as const;
  const rest = createRest(options.timer);
  const working = new Set<Promise<void>>();
  /** Ids of the messages that are worked on. */
  const inHand = new Set<string>();
  let closed = false;
  const begin = (messages: readonly ReceivedMessage[]) => {
    for (const { id } of messages) inHand.add(id);
    const worked = work(messages, options)
      .catch((error: unknown) => options.log("error", "batch of a queue failed", { queue: options.queueName, error }))
      .finally(() => {
        working.delete(worked);
        for (const { id } of messages) inHand.delete(id);
        // Whatever waited behind these in their groups.
        rest.end();
      });
    working.add(worked);
  };
  const run = async () => {
    while (!closed) {
      const outcome = await poll(options, { begin, inHand });
      if (working.size >= concurrency) await Promise.race(working);
      // Even after work: what the process does beside the queue must come to its turn.
      if (!closed) await rest.take(pauses[outcome]);
    }
    await Promise.all(working);
  };
  const ended = run();
  return {
    wake: rest.end,
    close: () => {
      closed = true;
      rest.end();
      return ended;
    },
  };
}

/**
 * A pause that can be ended, but for a turn of the event loop: a queue and a handler that never wait for anything would
 * keep everybody else from theirs.
 */
function createRest(timer: Timer): { take(ms: number): Promise<void>; end(): void } {
  let ended = false;
  let wake: (() => void) | undefined;
  return {
    take: async (ms) => {
      await new Promise<void>((done) => setImmediate(done));
      if (!ended) {
        await new Promise<void>((done) => {
          const pending = timer(done, ms);
          wake = () => {
            pending.cancel();
            done();
          };
        });
      }
      ended = false;
      wake = undefined;
    },
    end: () => {
      ended = true;
      wake?.();
    },
  };
}

async function poll(
  options: QueuePollerOptions,
  { begin, inHand }: { begin(messages: readonly ReceivedMessage[]): void; readonly inHand: ReadonlySet<string> },
): Promise<"worked" | "idle" | "failed"> {
  try {
    const received = await options.consumer.receive({ max: options.batchSize });
    // A process that was stopped for a while gets what it still works on a second time.
    const messages = received.filter(({ id }) => !inHand.has(id));
    if (messages.length === 0) return "idle";
    begin(messages);
    return "worked";
  } catch (error) {
    options.log("error", "queue could not be read", { queue: options.queueName, error });
    return "failed";
  }
}

async function work(messages: readonly ReceivedMessage[], options: QueuePollerOptions): Promise<void> {
  const heart = keepHidden(messages, options);
  const failed = await handle(messages, options);
  await heart.stop();
  for (const message of messages) await settle(message, failed.has(message.id), options);
}

/** Ids of the messages that failed; all of them when the handler throws. */
async function handle(
  messages: readonly ReceivedMessage[],
  { handler, queueName, functionSeconds, clock, log }: QueuePollerOptions,
): Promise<ReadonlySet<string>> {
  const deadline = clock() + functionSeconds * 1000;
  const remainingMs = () => Math.max(0, deadline - clock());
  const context = toLambdaContext({ requestId: randomUUID(), functionName: `${queueName}-local`, remainingMs });
  try {
    return readBatchResponse(await handler(toSqsEvent(messages, queueName), context), messages);
  } catch (error) {
    log("error", "handler of a queue failed", { queue: queueName, request_id: context.awsRequestId, error });
    return new Set(messages.map(({ id }) => id));
  }
}

/** `stop` resolves once no message is hidden by it any more, so that what is decided then stands. */
function keepHidden(messages: readonly ReceivedMessage[], options: QueuePollerOptions): { stop(): Promise<void> } {
  const { visibilitySeconds, timer } = options;
  let held = messages;
  let stopped = false;
  let beating = Promise.resolve();
  const beat = async () => {
    const kept = await Promise.all(held.map((message) => hide(message, visibilitySeconds, options)));
    held = held.filter((_, index) => kept[index] === true);
    if (!stopped) pending = schedule();
  };
  const schedule = () =>
    timer(
      () => {
        beating = beat();
      },
      (visibilitySeconds * 1000) / BEATS_A_VISIBILITY,
    );
  let pending = schedule();
  return {
    stop: async () => {
      stopped = true;
      pending.cancel();
      await beating;
    },
  };
}

async function settle(message: ReceivedMessage, failed: boolean, options: QueuePollerOptions): Promise<void> {
  const { consumer, retrySeconds } = options;
  if (!failed) {
    await attempt("message was done and comes again all the same", message, options, () =>
      consumer.remove(message.receipt),
    );
  } else if (retrySeconds !== undefined) await hide(message, retrySeconds, options);
}

function hide(message: ReceivedMessage, seconds: number, options: QueuePollerOptions): Promise<boolean> {
  const trouble = "message could not be kept hidden, and may be worked on twice";
  return attempt(trouble, message, options, () => options.consumer.hide(message.receipt, seconds));
}

/** One message's trouble is not that of the others. False when the receipt is void; true when that is not known. */
async function attempt(
  trouble: string,
  { id }: ReceivedMessage,
  { queueName, log }: QueuePollerOptions,
  act: () => Promise<boolean>,
): Promise<boolean> {
  try {
    const done = await act();
    if (!done) log("warn", trouble, { queue: queueName, message_id: id });
    return done;
  } catch (error) {
    log("error", trouble, { queue: queueName, message_id: id, error });
    return true;
  }
}
