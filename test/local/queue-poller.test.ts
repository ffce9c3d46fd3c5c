import type { SQSBatchResponse, SQSEvent } from "aws-lambda";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createQueueHandler, type QueueHandler } from "../../functions/aws/sqs-events.ts";
import { Fault } from "../../functions/contract/fault.ts";
import type { EventConsumer, Timer } from "../../functions/contract/ports.ts";
import { type QueuePoller, type QueuePollerOptions, startQueuePoller } from "../../local/queue-poller.ts";
import { realTimer } from "../../local/timer.ts";
import type { Logged } from "../kit/http-events.ts";
import { createManualClock, type ManualClock } from "../kit/manual-clock.ts";
import { createMemoryEventQueue, type MemoryEventQueue } from "../kit/memory-event-queue.ts";

const START = Date.UTC(2027, 0, 31);
const VISIBILITY_SECONDS = 60;
const PATIENCE = { timeout: 20_000, interval: 5 };

let clock: ManualClock;
let queue: MemoryEventQueue;
let logged: Logged[];
const pollers: QueuePoller[] = [];

beforeEach(() => {
  clock = createManualClock(START);
  queue = openQueue(false);
  logged = [];
});
afterEach(async () => {
  await Promise.all(pollers.splice(0).map((poller) => poller.close()));
});

function openQueue(fifo: boolean): MemoryEventQueue {
  const visibilityMs = VISIBILITY_SECONDS * 1000;
  return createMemoryEventQueue({ clock: clock.now, fifo, delayMs: 0, visibilityMs, maxReceives: 3 });
}

function start(handler: QueueHandler, options: Partial<QueuePollerOptions> = {}): QueuePoller {
  const poller = startQueuePoller({
    consumer: queue,
    handler,
    queueName: "notifications",
    batchSize: 10,
    visibilitySeconds: VISIBILITY_SECONDS,
    functionSeconds: 30,
    idleMs: 5,
    clock: clock.now,
    timer: realTimer,
    log: (level, message, fields = {}) => logged.push({ level, message, fields: { ...fields } }),
    ...options,
  });
  pollers.push(poller);
  return poller;
}

type Recorder = QueueHandler & { readonly batches: readonly (readonly string[])[] };

/** Notes the bodies of each batch and answers what it is told to. */
function record(answer: (event: SQSEvent) => SQSBatchResponse | Promise<SQSBatchResponse> = () => done()): Recorder {
  const batches: (readonly string[])[] = [];
  const handler: QueueHandler = async (event) => {
    batches.push(event.Records.map(({ body }) => body));
    return answer(event);
  };
  return Object.assign(handler, { batches });
}

function done(...failed: readonly string[]): SQSBatchResponse {
  return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) };
}

function idOf(event: SQSEvent, body: string): string {
  return event.Records.find((each) => each.body === body)?.messageId ?? "";
}

async function sendAll(...bodies: readonly string[]): Promise<void> {
  for (const body of bodies) await queue.send({ body });
}

/** Nothing is left, not even hidden. */
async function isEmpty(): Promise<boolean> {
  clock.advance(VISIBILITY_SECONDS * 1000);
  return (await queue.receive({ max: 10 })).length === 0 && queue.deadLetters().length === 0;
}

/** A promise to be kept by the test. */
function createGate(): { readonly passed: Promise<void>; open(): void } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}

describe("a batch", () => {
  test("goes to the handler as the event that Lambda gets, and is gone when it is done", async () => {
    const events: SQSEvent[] = [];
    await sendAll("one", "two");
    const poller = start(async (event, context) => {
      events.push(event);
      expect(context.getRemainingTimeInMillis()).toBe(30_000);
      clock.advance(29_000);
      expect(context.getRemainingTimeInMillis()).toBe(1000);
      return done();
    });
    await vi.waitUntil(() => events.length === 1, PATIENCE);
    await poller.close();
    expect(events[0]?.Records).toMatchObject([
      {
        body: "one",
        attributes: { ApproximateReceiveCount: "1", SentTimestamp: String(START) },
        eventSourceARN: "arn:aws:sqs:local:000000000000:notifications",
      },
      { body: "two" },
    ]);
    expect(await isEmpty()).toBe(true);
    expect(logged).toEqual([]);
  });

  test("has as many messages as were asked for and not one more", async () => {
    const handler = record();
    await sendAll("a", "b", "c");
    start(handler, { batchSize: 2 });
    await vi.waitUntil(() => handler.batches.length === 2, PATIENCE);
    expect(handler.batches).toEqual([["a", "b"], ["c"]]);
  });

  test("is not begun while another is under way", async () => {
    const gate = createGate();
    let running = 0;
    let most = 0;
    const handler = record(async () => {
      running += 1;
      most = Math.max(most, running);
      await gate.passed;
      running -= 1;
      return done();
    });
    await sendAll("a");
    const poller = start(handler, { batchSize: 1 });
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
    await sendAll("b", "c");
    poller.wake();
    poller.wake();
    gate.open();
    await vi.waitUntil(() => handler.batches.length === 3, PATIENCE);
    expect(most).toBe(1);
  });

  test("that is slow holds up no other where several may be under way, and there are never more than that", async () => {
    const gate = createGate();
    const handler = record(async (event) => {
      if (event.Records[0]?.body.startsWith("slow")) await gate.passed;
      return done();
    });
    await sendAll("slow 1", "quick 1", "slow 2", "quick 2");
    start(handler, { batchSize: 1, concurrency: 2 });
    await vi.waitUntil(() => handler.batches.length === 3, PATIENCE);
    expect(handler.batches.flat()).toEqual(["slow 1", "quick 1", "slow 2"]);
    gate.open();
    await vi.waitUntil(() => handler.batches.length === 4, PATIENCE);
  });

  test("that failed in part leaves what failed in the queue, for after the visibility timeout", async () => {
    const handler = record((event) => done(idOf(event, "bad")));
    await sendAll("good", "bad");
    const poller = start(handler);
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
    await poller.close();
    clock.advance(VISIBILITY_SECONDS * 1000 - 1);
    expect(await queue.receive({ max: 10 })).toEqual([]);
    clock.advance(1);
    expect(await queue.receive({ max: 10 })).toMatchObject([{ body: "bad", receiveCount: 2 }]);
  });

  test("brings what failed back after the retry time where there is one, until it is a dead letter", async () => {
    const handler = record((event) => done(idOf(event, "bad")));
    await sendAll("good", "bad");
    start(handler, { retrySeconds: 2 });
    for (const batches of [1, 2, 3]) {
      await vi.waitUntil(() => handler.batches.length === batches, PATIENCE);
      expect(queue.deadLetters()).toEqual([]);
      // The message is given back some time after the handler has ended.
      await vi.waitUntil(() => {
        clock.advance(2000);
        return handler.batches.length > batches || queue.deadLetters().length > 0;
      }, PATIENCE);
    }
    expect(handler.batches).toEqual([["good", "bad"], ["bad"], ["bad"]]);
    expect(queue.deadLetters()).toMatchObject([{ body: "bad", receiveCount: 3 }]);
  });

  test("comes back whole when the handler throws, and the next one is worked on", async () => {
    const broken = new TypeError("broken");
    const handler = record((event) => {
      if (event.Records.some(({ body }) => body === "bad")) throw broken;
      return done();
    });
    await sendAll("bad");
    start(handler);
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
    await sendAll("good");
    await vi.waitUntil(() => handler.batches.length === 2, PATIENCE);
    expect(handler.batches).toEqual([["bad"], ["good"]]);
    expect(logged).toMatchObject([
      { level: "error", message: "handler of a queue failed", fields: { queue: "notifications", error: broken } },
    ]);
    clock.advance(VISIBILITY_SECONDS * 1000);
    await vi.waitUntil(() => handler.batches.length === 3, PATIENCE);
  });

  test("of an ordered queue fails from its first failure on, through the very handler of the cloud", async () => {
    queue = openQueue(true);
    for (const id of ["a1", "b1", "a2"]) await queue.send({ body: id, group: id.charAt(0), deduplicationId: id });
    const seen: string[] = [];
    const handler = createQueueHandler({
      log: () => undefined,
      process: async (messages) => {
        seen.push(...messages.map(({ body }) => body));
        const bad = messages.filter(({ body, receiveCount }) => body === "a1" && receiveCount === 1);
        return new Map(bad.map(({ id }) => [id, new Fault("SERVER_UNAVAILABLE", "not now")]));
      },
    });
    start(handler, { retrySeconds: 0 });
    await vi.waitUntil(() => seen.length === 5, PATIENCE);
    expect(seen).toEqual(["a1", "b1", "a2", "a1", "a2"]);
  });
});

describe("a message that is worked on", () => {
  test("stays hidden for as long as the work takes, and is removed by the same receipt", async () => {
    const gate = createGate();
    const timers = createHandTimer();
    await sendAll("one");
    const poller = start(
      record(() => gate.passed.then(() => done())),
      { timer: timers.timer },
    );
    for (let beat = 0; beat < 10; beat += 1) {
      await vi.waitUntil(() => timers.pending().length === 1, PATIENCE);
      expect(timers.pending()).toEqual([(VISIBILITY_SECONDS * 1000) / 3]);
      clock.advance((VISIBILITY_SECONDS * 1000) / 3);
      timers.fire();
      expect(await queue.receive({ max: 1 })).toEqual([]);
    }
    gate.open();
    await poller.close();
    expect(await isEmpty()).toBe(true);
    expect(logged).toEqual([]);
  });

  test("is not hidden any more by what is void, and that is told once", async () => {
    const gate = createGate();
    const timers = createHandTimer();
    await sendAll("one");
    start(
      record(() => gate.passed.then(() => done())),
      { timer: timers.timer },
    );
    for (let beat = 0; beat < 3; beat += 1) {
      await vi.waitUntil(() => timers.pending().length === 1, PATIENCE);
      clock.advance(VISIBILITY_SECONDS * 1000);
      timers.fire();
    }
    await vi.waitUntil(() => timers.pending().length === 1, PATIENCE);
    expect(logged).toMatchObject([{ level: "warn", fields: { queue: "notifications", message_id: "m1" } }]);
    gate.open();
  });

  test("and was handed out again all the same is told of, and its next handing out stays", async () => {
    const gate = createGate();
    const handler = record(() => gate.passed.then(() => done()));
    await sendAll("one");
    const poller = start(handler);
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
    clock.advance(VISIBILITY_SECONDS * 1000);
    const [again] = await queue.receive({ max: 1 });
    gate.open();
    await poller.close();
    expect(logged).toMatchObject([{ level: "warn", fields: { message_id: again?.id } }]);
    expect(await queue.remove(again?.receipt ?? "")).toBe(true);
  });

  test("is settled once a hiding that is under way has ended, which would undo it", async () => {
    const [work, hiding] = [createGate(), createGate()];
    const timers = createHandTimer();
    const acts: string[] = [];
    const consumer: EventConsumer = {
      ...queue,
      hide: async (receipt, seconds) => {
        if (seconds === VISIBILITY_SECONDS) await hiding.passed;
        acts.push(`hide for ${seconds} s`);
        return queue.hide(receipt, seconds);
      },
    };
    await sendAll("one");
    const handler = record(async (event) => {
      await work.passed;
      return done(idOf(event, "one"));
    });
    const poller = start(handler, { consumer, timer: timers.timer, retrySeconds: 1 });
    await vi.waitUntil(() => timers.pending().length === 1, PATIENCE);
    timers.fire();
    work.open();
    const closed = poller.close();
    await new Promise((turn) => setImmediate(turn));
    hiding.open();
    await closed;
    expect(acts).toEqual([`hide for ${VISIBILITY_SECONDS} s`, "hide for 1 s"]);
    expect(timers.pending()).toEqual([]);
  });
});

/** A timer whose time comes when the test says so; tells what is waited for, in ms. */
function createHandTimer(): { readonly timer: Timer; pending(): readonly number[]; fire(): void } {
  const waiting = new Set<{ readonly act: () => void; readonly milliseconds: number }>();
  return {
    timer: (act, milliseconds) => {
      const entry = { act, milliseconds };
      waiting.add(entry);
      return { cancel: () => void waiting.delete(entry) };
    },
    pending: () => [...waiting].map(({ milliseconds }) => milliseconds),
    fire: () => {
      const due = [...waiting];
      waiting.clear();
      for (const { act } of due) act();
    },
  };
}

describe("an empty queue", () => {
  test.each([
    [{ idleMs: 7 }, 7],
    [{}, 50],
  ])("is looked into again after a short while (%j)", async (idle, wanted) => {
    const handler = record();
    const timers = createHandTimer();
    start(handler, { idleMs: undefined, ...idle, timer: timers.timer });
    await vi.waitUntil(() => timers.pending().length === 1, PATIENCE);
    expect(timers.pending()).toEqual([wanted]);
    await sendAll("one");
    timers.fire();
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
  });

  test("is looked into at once when somebody has sent something", async () => {
    const handler = record();
    const timers = createHandTimer();
    const poller = start(handler, { timer: timers.timer });
    await vi.waitUntil(() => timers.pending().length === 1, PATIENCE);
    await sendAll("one");
    poller.wake();
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
  });

  test("is looked into once more when somebody has sent something during the look", async () => {
    const [looking, looked] = [createGate(), createGate()];
    let looks = 0;
    const consumer: EventConsumer = {
      ...queue,
      receive: async (options) => {
        looks += 1;
        const found = await queue.receive(options);
        if (looks > 1) return found;
        looking.open();
        await looked.passed;
        return found;
      },
    };
    const handler = record();
    const poller = start(handler, { consumer, idleMs: 3_600_000 });
    await looking.passed;
    await sendAll("one");
    poller.wake();
    looked.open();
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
  });
});

describe("trouble with the queue", () => {
  test("is logged, and the loop goes on, a second later or when it is woken", async () => {
    const broken = new Error("the disk is full");
    let failures = 0;
    const consumer: EventConsumer = {
      ...queue,
      receive: async (options) => {
        if (failures < 2) {
          failures += 1;
          throw broken;
        }
        return queue.receive(options);
      },
    };
    const timers = createHandTimer();
    const handler = record();
    const poller = start(handler, { consumer, timer: timers.timer });
    await sendAll("one");
    for (const failed of [1, 2]) {
      await vi.waitUntil(() => failures === failed && timers.pending().length === 1, PATIENCE);
      expect(timers.pending()).toEqual([1000]);
      poller.wake();
    }
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
    expect(logged).toMatchObject([
      { level: "error", message: "queue could not be read", fields: { queue: "notifications", error: broken } },
      { level: "error", fields: { error: broken } },
    ]);
  });

  test("with one message is not that of the others", async () => {
    const broken = new Error("the disk is full");
    const consumer: EventConsumer = {
      ...queue,
      remove: async (receipt) => {
        if (receipt === "r1") throw broken;
        return queue.remove(receipt);
      },
    };
    const handler = record();
    await sendAll("one", "two");
    const poller = start(handler, { consumer });
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
    await poller.close();
    clock.advance(VISIBILITY_SECONDS * 1000);
    expect(await queue.receive({ max: 10 })).toMatchObject([{ body: "one" }]);
    expect(logged).toMatchObject([{ level: "error", fields: { message_id: "m1", error: broken } }]);
  });
});

describe("closing", () => {
  test("waits for the batch that is worked on, settles it, leaves no timer behind, and begins no other", async () => {
    const gate = createGate();
    const timers = createHandTimer();
    const handler = record(() => gate.passed.then(() => done()));
    await sendAll("one", "two");
    const poller = start(handler, { batchSize: 1, timer: timers.timer });
    await vi.waitUntil(() => handler.batches.length === 1, PATIENCE);
    let closed = false;
    const closing = poller.close().then(() => {
      closed = true;
    });
    await new Promise((turn) => setImmediate(turn));
    expect(closed).toBe(false);
    gate.open();
    await closing;
    expect(timers.pending()).toEqual([]);
    clock.advance(VISIBILITY_SECONDS * 1000);
    expect(await queue.receive({ max: 10 })).toMatchObject([{ body: "two", receiveCount: 1 }]);
  });

  test("ends a pause, leaves no timer behind, and can be done twice", async () => {
    const timers = createHandTimer();
    const poller = start(record(), { timer: timers.timer });
    await vi.waitUntil(() => timers.pending().length === 1, PATIENCE);
    await Promise.all([poller.close(), poller.close()]);
    expect(timers.pending()).toEqual([]);
  });
});

describe("everybody else in the process", () => {
  /** Fires once the event loop has had its turn, as a request or a signal would be heard. */
  const turn = () => new Promise<"turn">((resolve) => setImmediate(() => resolve("turn")));

  test("has a turn between batches, though neither queue nor handler ever waits for anything", async () => {
    let handled = 0;
    await sendAll(...Array.from({ length: 2_000 }, (_, index) => String(index)));
    start(
      async () => {
        handled += 1;
        return done();
      },
      { batchSize: 1, concurrency: 10 },
    );
    await turn();
    await turn();
    expect(handled).toBeLessThan(100);
    await vi.waitUntil(() => handled === 2_000, PATIENCE);
  });

  test("has a turn while a message fails again and again at once", async () => {
    let handled = 0;
    await sendAll("bad");
    const poller = start(
      async (event) => {
        handled += 1;
        return done(...event.Records.map(({ messageId }) => messageId));
      },
      { retrySeconds: 0 },
    );
    await turn();
    expect(handled).toBeLessThan(10);
    await poller.close();
  });
});

test("a message that is still worked on is not worked on twice, though it was handed out again meanwhile", async () => {
  const gate = createGate();
  let begun = 0;
  await sendAll("slow");
  const poller = start(
    async () => {
      begun += 1;
      await gate.passed;
      return done();
    },
    // Its heart does not beat: the process was stopped for so long.
    { concurrency: 2, timer: (act, ms) => (ms > 1_000 ? { cancel: () => undefined } : realTimer(act, ms)) },
  );
  await vi.waitUntil(() => begun === 1, PATIENCE);
  clock.advance(VISIBILITY_SECONDS * 1000 + 1);
  poller.wake();
  const received = vi.spyOn(queue, "receive");
  await vi.waitUntil(() => received.mock.calls.length >= 3, PATIENCE);
  expect(begun).toBe(1);
  gate.open();
  await poller.close();
});
