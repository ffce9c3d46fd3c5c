import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { EventConsumer, EventQueue, ReceivedMessage } from "../../functions/contract/ports.ts";
import type { ManualClock } from "../kit/manual-clock.ts";

/**
 * What every event queue must do, the standard one and the one that keeps order. One suite, run against each: the
 * tests' own, the embedded one, and SQS's kin.
 */

export type QueueSettings = {
  readonly fifo: boolean;
  /** Whole seconds, since SQS knows no parts of them. */
  readonly delaySeconds: number;
  readonly visibilitySeconds: number;
  readonly maxReceives: number;
};

export type OpenedEventQueue = {
  readonly queue: EventQueue & EventConsumer;
  /** A second handle on the same messages, as another process would have it. */
  readonly peer: EventQueue & EventConsumer;
  /** Bodies of the dead letters, in any order. */
  deadBodies(): Promise<readonly string[]>;
  /** Its own; undefined where no test can move it. */
  readonly clock?: ManualClock;
};

export type OpenedQueues = {
  /** An empty queue that nobody else uses. */
  open(settings: QueueSettings): Promise<OpenedEventQueue>;
  close(): Promise<void>;
};

export type EventQueueSubject = {
  start(): Promise<OpenedQueues>;
  /**
   * Title of a claim -> why it does not hold here. Such a claim is run and must fail, so that none outlives its reason.
   */
  readonly exceptions?: Readonly<Record<string, string>>;
  /** Title of a claim -> why it cannot be seen here. Such a claim is left out by name. */
  readonly unseen?: Readonly<Record<string, string>>;
};

type Claim = (title: string, settings: Partial<QueueSettings>, prove: (the: OpenedEventQueue) => Promise<void>) => void;

/** A minute is for ever where time is real, and no time at all where it is not. */
const SETTINGS: QueueSettings = { fifo: false, delaySeconds: 0, visibilitySeconds: 60, maxReceives: 5 };
const FIFO = { fifo: true } as const;
const KIBI = 1024;
/** Generous: a loaded machine is slow, and nothing is shown by that. */
const PATIENCE = { timeout: 20_000, interval: 40 };

export function describeEventQueue(name: string, subject: EventQueueSubject): void {
  const { exceptions = {}, unseen = {} } = subject;
  const claimed = new Set<string>();

  // Claims that wait for the emulators' real seconds wait together.
  describe.concurrent(`${name} as an event queue`, () => {
    let queues: OpenedQueues;
    beforeAll(async () => {
      queues = await subject.start();
    });
    afterAll(() => queues?.close());

    const claim: Claim = (title, settings, prove) => {
      claimed.add(title);
      const run = async () => prove(await queues.open({ ...SETTINGS, ...settings }));
      const [reason, blindness] = [exceptions[title], unseen[title]];
      if (blindness !== undefined) test.skip(`left out here, because ${blindness}: ${title}`, run);
      else if (reason === undefined) test(title, run);
      else test.fails(`does not hold here, because ${reason}: ${title}`, run);
    };

    describeBodies(claim);
    describeReceiving(claim);
    describeTimes(claim);
    describeDeadLetters(claim);
    describeOrder(claim);
    describeDuplicates(claim);

    test("every declared exception names a claim", () => {
      expect([...Object.keys(exceptions), ...Object.keys(unseen)].filter((title) => !claimed.has(title))).toEqual([]);
    });
  });
}

function describeBodies(claim: Claim): void {
  claim("a body comes out as it went in", {}, async ({ queue, peer }) => {
    const bodies = [
      '{"server":"github","method":"notifications/tools/list_changed"}',
      "tab\t line\n return\r <xml>&amp;</xml> ]]> ' \"",
      "é \u0085 \u202e \ud7ff \ue000 \ufffd",
    ];
    for (const body of bodies) await queue.send({ body });
    expect((await take(peer, bodies.length)).map(({ body }) => body).sort()).toEqual([...bodies].sort());
  });

  claim("a character beyond U+FFFF comes out as it went in", {}, async ({ queue }) => {
    const body = "\u{10000} \u{1f680} \u{10ffff}";
    await queue.send({ body });
    expect(bodiesOf(await take(queue, 1))).toEqual([body]);
  });

  claim("a body of 262,144 bytes is kept, one byte more is refused", {}, async ({ queue }) => {
    const body = "é".repeat(128 * KIBI);
    await expect(queue.send({ body: `${body}.` })).rejects.toThrow();
    await queue.send({ body });
    expect((await take(queue, 1))[0]?.body).toBe(body);
  });

  claim("a body that XML 1.0 cannot carry is refused, and so is none", {}, async ({ queue }) => {
    for (const body of ["", "s\u00001", "\u0008", "\u001f", "\ufffe", "\uffff"]) {
      expect([body, await isKept(queue, body)]).toEqual([body, false]);
    }
    expect(await queue.receive({ max: 10 })).toEqual([]);
  });

  claim("half a surrogate pair is refused", {}, async ({ queue }) => {
    for (const body of ["s\ud800", "\udc00\ud800"]) expect(await isKept(queue, body)).toBe(false);
  });
}

function describeReceiving(claim: Claim): void {
  claim("an empty queue gives nothing", {}, async ({ queue }) => {
    expect(await queue.receive({ max: 10 })).toEqual([]);
  });

  claim("a message tells its id, when it was sent, when it first came, and how often", {}, async ({ queue, clock }) => {
    await queue.send({ body: "one" });
    const [first] = await take(queue, 1);
    expect(first).toMatchObject({ body: "one", receiveCount: 1 });
    expect(first?.firstReceivedAt).toBeGreaterThanOrEqual(first?.sentAt ?? Number.NaN);
    const { id, sentAt, firstReceivedAt } = first ?? {};
    const receipts = [first?.receipt];
    for (const receiveCount of [2, 3]) {
      clock?.advance(10);
      await queue.hide(receipts.at(-1) ?? "", 0);
      const [again] = await take(queue, 1);
      expect(again).toMatchObject({ id, body: "one", sentAt, firstReceivedAt, receiveCount });
      expect(receipts).not.toContain(again?.receipt);
      receipts.push(again?.receipt);
    }
  });

  claim("no more than asked come at once, and none of them twice", {}, async ({ queue }) => {
    await sendAll(queue, ["a", "b", "c", "d", "e"]);
    expect(await queue.receive({ max: 2 })).toHaveLength(2);
    await take(queue, 3);
    expect(await queue.receive({ max: 10 })).toEqual([]);
  });

  claim("what one handle has in hand, no other gets", {}, async ({ queue, peer }) => {
    await queue.send({ body: "one" });
    await take(queue, 1);
    expect(await peer.receive({ max: 10 })).toEqual([]);
  });

  claim("many senders and receivers at once: every message comes to exactly one", {}, async ({ queue, peer }) => {
    const bodies = Array.from({ length: 24 }, (_, index) => `message ${index}`);
    await Promise.all(bodies.map((body, index) => (index % 2 === 0 ? queue : peer).send({ body })));
    const taken = await Promise.all([queue, peer, queue, peer].map((consumer) => drain(consumer)));
    const rest = await drain(queue);
    expect([...taken.flat(), ...rest].sort()).toEqual([...bodies].sort());
  });

  claim("a removed message never comes again", { visibilitySeconds: 1 }, async ({ queue, clock }) => {
    await sendAll(queue, ["one"]);
    const [one] = await take(queue, 1);
    expect(await queue.remove(one?.receipt ?? "")).toBe(true);
    await sendAll(queue, ["two"]);
    const [two] = await take(queue, 1);
    expect(bodiesOf(await after(1000, { queue, clock }))).toEqual(["two"]);
    expect(two?.body).toBe("two");
  });

  claim("what was handed out again does not go by the older receipt", {}, async ({ queue }) => {
    const { newer, older } = await handedOutTwice(queue);
    await queue.remove(older.receipt).catch(() => undefined);
    await queue.hide(newer.receipt, 0);
    expect(bodiesOf(await queue.receive({ max: 10 }))).toEqual(["one"]);
  });

  claim("the older receipt of what was handed out again is told to be void", {}, async ({ queue }) => {
    const { older } = await handedOutTwice(queue);
    expect(await queue.hide(older.receipt, 5)).toBe(false);
    expect(await queue.remove(older.receipt)).toBe(false);
  });

  claim("a receipt that nobody gave is void", {}, async ({ queue }) => {
    await queue.send({ body: "one" });
    expect(await queue.hide("no-such-receipt", 5)).toBe(false);
    expect(await queue.remove("no-such-receipt")).toBe(false);
    expect(bodiesOf(await take(queue, 1))).toEqual(["one"]);
  });
}

function describeTimes(claim: Claim): void {
  claim("a message comes after the delay and no sooner", { delaySeconds: 1 }, async ({ queue, clock }) => {
    await queue.send({ body: "one" });
    const [one] = await after(1000, { queue, clock });
    expect((one?.firstReceivedAt ?? 0) - (one?.sentAt ?? 0)).toBeGreaterThanOrEqual(1000);
  });

  claim(
    "a message in hand comes again after the visibility timeout and no sooner",
    {
      visibilitySeconds: 1,
    },
    async ({ queue, clock }) => {
      await queue.send({ body: "one" });
      await take(queue, 1);
      expect(await after(1000, { queue, clock })).toMatchObject([{ body: "one", receiveCount: 2 }]);
    },
  );

  claim("a message in hand can be hidden for longer", { visibilitySeconds: 1 }, async ({ queue, clock }) => {
    await sendAll(queue, ["one", "two"]);
    const [first, second] = await take(queue, 2);
    expect(await queue.hide(first?.receipt ?? "", 60)).toBe(true);
    expect(bodiesOf(await after(1000, { queue, clock }))).toEqual([second?.body]);
  });

  claim("a message in hand can be hidden for less long, or given back at once", {}, async ({ queue, clock }) => {
    await sendAll(queue, ["one"]);
    const [one] = await take(queue, 1);
    expect(await queue.hide(one?.receipt ?? "", 1)).toBe(true);
    const [again] = await after(1000, { queue, clock });
    expect(await queue.hide(again?.receipt ?? "", 0)).toBe(true);
    expect(bodiesOf(await take(queue, 1))).toEqual(["one"]);
  });

  claim("what was given back cannot be hidden by the same receipt", {}, async ({ queue }) => {
    await queue.send({ body: "one" });
    const [one] = await take(queue, 1);
    await queue.hide(one?.receipt ?? "", 0);
    expect(await queue.hide(one?.receipt ?? "", 60)).toBe(false);
    expect(bodiesOf(await queue.receive({ max: 10 }))).toEqual(["one"]);
  });
}

function describeDeadLetters(claim: Claim): void {
  claim("a message comes as often as it may and is a dead letter then", { maxReceives: 2 }, async (the) => {
    await the.queue.send({ body: "one" });
    for (const receiveCount of [1, 2]) {
      const [message] = await take(the.queue, 1);
      expect(message).toMatchObject({ receiveCount });
      expect(await the.deadBodies()).toEqual([]);
      await the.queue.hide(message?.receipt ?? "", 0);
    }
    expect(await the.queue.receive({ max: 10 })).toEqual([]);
    expect(await the.deadBodies()).toEqual(["one"]);
    expect(await the.queue.receive({ max: 10 })).toEqual([]);
  });

  claim("a message that dies makes way for the next one in the same moment", { maxReceives: 1 }, async (the) => {
    await sendAll(the.queue, ["one"]);
    const [one] = await take(the.queue, 1);
    await the.queue.hide(one?.receipt ?? "", 0);
    await sendAll(the.queue, ["two"]);
    expect(bodiesOf(await the.queue.receive({ max: 1 }))).toEqual(["two"]);
  });
}

function describeOrder(claim: Claim): void {
  claim("messages of a group come in the order of sending", FIFO, async ({ queue, peer }) => {
    const bodies = ["first", "second", "third", "fourth", "fifth"];
    await sendAll(queue, bodies, "g");
    expect(await drain(peer, bodies.length)).toEqual(bodies);
  });

  claim("group and deduplication id come out as they went in", FIFO, async ({ queue }) => {
    const message = { body: "one", group: "a.b_c-d", deduplicationId: "github:1234567890" };
    await queue.send(message);
    expect(await take(queue, 1)).toMatchObject([message]);
  });

  claim("a queue that keeps order refuses what has no group or no deduplication id", FIFO, async ({ queue }) => {
    await expect(queue.send({ body: "one", deduplicationId: "1" })).rejects.toThrow();
    await expect(queue.send({ body: "one", group: "g" })).rejects.toThrow();
    expect(await queue.receive({ max: 10 })).toEqual([]);
  });

  claim("nothing of a group comes while one of its messages is in hand", FIFO, async ({ queue, peer }) => {
    await sendAll(queue, ["first", "second"], "g");
    const [first] = await queue.receive({ max: 1 });
    expect(first?.body).toBe("first");
    expect(await peer.receive({ max: 10 })).toEqual([]);
    await sendAll(queue, ["third"], "g");
    expect(await peer.receive({ max: 10 })).toEqual([]);
    await queue.remove(first?.receipt ?? "");
    expect(await drain(peer, 2)).toEqual(["second", "third"]);
  });

  claim("what was given back waits while a later message of its group is in hand", FIFO, async ({ queue }) => {
    await sendAll(queue, ["first", "second"], "g");
    const [first, second] = await queue.receive({ max: 10 });
    await queue.hide(first?.receipt ?? "", 0);
    expect(await queue.receive({ max: 10 })).toEqual([]);
    await queue.hide(second?.receipt ?? "", 0);
    expect(await drain(queue, 2)).toEqual(["first", "second"]);
  });

  claim("a message in hand holds up no other group", FIFO, async ({ queue }) => {
    await sendAll(queue, ["a1", "a2"], "a");
    await queue.receive({ max: 1 });
    await sendAll(queue, ["b1"], "b");
    expect(bodiesOf(await take(queue, 1))).toEqual(["b1"]);
  });

  claim("several messages of a group may come together, in their order", FIFO, async ({ queue }) => {
    await sendAll(queue, ["first", "second", "third"], "g");
    expect(bodiesOf(await queue.receive({ max: 10 }))).toEqual(["first", "second", "third"]);
  });

  claim("a message that is given back comes again before the later ones of its group", FIFO, async ({ queue }) => {
    await sendAll(queue, ["first", "second"], "g");
    const [first] = await queue.receive({ max: 1 });
    await queue.hide(first?.receipt ?? "", 0);
    expect(await drain(queue, 2)).toEqual(["first", "second"]);
  });

  claim(
    "a message whose visibility timeout passed comes again before the later ones of its group",
    {
      ...FIFO,
      visibilitySeconds: 1,
    },
    async ({ queue, clock }) => {
      await sendAll(queue, ["first", "second"], "g");
      await queue.receive({ max: 1 });
      const [again] = await after(1000, { queue, clock });
      expect(again).toMatchObject({ body: "first", receiveCount: 2 });
    },
  );

  claim("a queue that keeps order delays each message", { ...FIFO, delaySeconds: 1 }, async ({ queue, clock }) => {
    await sendAll(queue, ["first", "second"], "g");
    const [first] = await after(1000, { queue, clock });
    expect(first?.body).toBe("first");
    expect((first?.firstReceivedAt ?? 0) - (first?.sentAt ?? 0)).toBeGreaterThanOrEqual(1000);
  });

  claim("a message of a group that dies lets the next one come", { ...FIFO, maxReceives: 1 }, async (the) => {
    await sendAll(the.queue, ["first", "second"], "g");
    const [first] = await the.queue.receive({ max: 1 });
    await the.queue.hide(first?.receipt ?? "", 0);
    expect(await drain(the.queue, 1)).toEqual(["second"]);
    expect(await the.deadBodies()).toEqual(["first"]);
  });
}

function describeDuplicates(claim: Claim): void {
  const ONE = { body: "one", group: "g", deduplicationId: "g:1" };

  claim("the same deduplication id again is accepted and dropped, whatever the body", FIFO, async ({ queue, peer }) => {
    await queue.send(ONE);
    await peer.send({ ...ONE, body: "two" });
    await queue.send({ ...ONE, body: "three", deduplicationId: "g:2" });
    expect(await drain(queue, 2)).toEqual(["one", "three"]);
    expect(await queue.receive({ max: 10 })).toEqual([]);
  });

  claim("a duplicate is dropped even when its original is gone", FIFO, async ({ queue }) => {
    await queue.send(ONE);
    await drain(queue, 1);
    await queue.send(ONE);
    expect(await queue.receive({ max: 10 })).toEqual([]);
  });

  claim("a duplicate is one in every group of the queue", FIFO, async ({ queue }) => {
    await queue.send(ONE);
    await queue.send({ ...ONE, group: "other" });
    expect(await drain(queue)).toEqual(["one"]);
  });

  claim("a duplicate of what is delayed is dropped", { ...FIFO, delaySeconds: 1 }, async ({ queue, clock }) => {
    await queue.send(ONE);
    await queue.send(ONE);
    expect(await after(1000, { queue, clock })).toHaveLength(1);
    expect(await queue.receive({ max: 10 })).toEqual([]);
  });

  claim(
    "a duplicate is known for five minutes from its original and not for longer",
    FIFO,
    async ({ queue, clock }) => {
      const the = clock ?? noClock();
      await queue.send(ONE);
      await drain(queue, 1);
      the.advance(299_999);
      await queue.send(ONE);
      expect(await queue.receive({ max: 10 })).toEqual([]);
      the.advance(1);
      await queue.send(ONE);
      expect(await drain(queue, 1)).toEqual(["one"]);
    },
  );
}

function noClock(): never {
  throw new Error("this claim needs a clock that it can move: declare it as unseen");
}

async function isKept(queue: EventQueue, body: string): Promise<boolean> {
  return queue.send({ body }).then(
    () => true,
    () => false,
  );
}

async function sendAll(queue: EventQueue, bodies: readonly string[], group?: string): Promise<void> {
  for (const body of bodies) {
    await queue.send(group === undefined ? { body } : { body, group, deduplicationId: `${group}:${body}` });
  }
}

/** So many messages, as they come. */
async function take(consumer: EventConsumer, count: number): Promise<readonly ReceivedMessage[]> {
  const taken: ReceivedMessage[] = [];
  await vi.waitUntil(async () => {
    taken.push(...(await consumer.receive({ max: Math.min(count - taken.length, 10) })));
    return taken.length >= count;
  }, PATIENCE);
  return taken;
}

/**
 * Bodies in the order in which they come, each removed before the next is asked for: so many, or all that there are.
 */
async function drain(consumer: EventConsumer, count?: number): Promise<readonly string[]> {
  const bodies: string[] = [];
  while (count === undefined || bodies.length < count) {
    const [message] = count === undefined ? await consumer.receive({ max: 1 }) : await take(consumer, 1);
    if (message === undefined) break;
    await consumer.remove(message.receipt);
    bodies.push(message.body);
  }
  return bodies;
}

/**
 * What comes once the time has passed: to the millisecond by a clock of the test's own; over a real one, nothing at
 * first and something in the end.
 */
async function after(
  ms: number,
  { queue, clock }: { readonly queue: EventConsumer; readonly clock?: ManualClock | undefined },
): Promise<readonly ReceivedMessage[]> {
  clock?.advance(ms - 1);
  expect(await queue.receive({ max: 10 })).toEqual([]);
  clock?.advance(1);
  return vi.waitUntil(async () => {
    const messages = await queue.receive({ max: 10 });
    return messages.length > 0 && messages;
  }, PATIENCE);
}

async function handedOutTwice(queue: EventQueue & EventConsumer) {
  await queue.send({ body: "one" });
  const [older] = await take(queue, 1);
  await queue.hide(older?.receipt ?? "", 0);
  const [newer] = await take(queue, 1);
  if (older === undefined || newer === undefined) throw new Error("nothing came");
  return { older, newer };
}

function bodiesOf(messages: readonly ReceivedMessage[]): readonly string[] {
  return messages.map(({ body }) => body);
}
