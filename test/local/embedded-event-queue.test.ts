import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReceivedMessage } from "../../functions/contract/ports.ts";
import {
  type EmbeddedEventQueue,
  type EmbeddedEventQueueOptions,
  openEmbeddedEventQueue,
} from "../../local/embedded-event-queue.ts";
import type { Logged } from "../kit/http-events.ts";
import { createManualClock, type ManualClock } from "../kit/manual-clock.ts";
import "../kit/to-fail.ts";

const START = Date.UTC(2027, 0, 31, 12, 0, 0, 750);
const DAY_MS = 24 * 3_600_000;
/** It has no such modes. */
const WINDOWS = process.platform === "win32";

let parent: string;
let directory: string;
let clock: ManualClock;
let logged: Logged[];
const opened: EmbeddedEventQueue[] = [];

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "skillbroker-queue-"));
  directory = join(parent, "data");
  clock = createManualClock(START);
  logged = [];
});
afterEach(() => {
  for (const queue of opened.splice(0)) queue.close();
  rmSync(parent, { recursive: true });
});

function open(options: Partial<EmbeddedEventQueueOptions> = {}): EmbeddedEventQueue {
  const queue = openEmbeddedEventQueue({
    directory,
    name: "q",
    fifo: false,
    clock: clock.now,
    log: (level, message, fields = {}) => logged.push({ level, message, fields: { ...fields } }),
    delaySeconds: 0,
    visibilitySeconds: 5,
    maxReceives: 3,
    ...options,
  });
  opened.push(queue);
  return queue;
}

async function bodiesIn(queue: EmbeddedEventQueue): Promise<readonly string[]> {
  return (await queue.receive({ max: 100 })).map(({ body }) => body);
}

/** The first message that comes. */
async function one(queue: EmbeddedEventQueue): Promise<ReceivedMessage> {
  const [message] = await queue.receive({ max: 1 });
  if (message === undefined) throw new Error("nothing came");
  return message;
}

/** Hands the message out and back until it may not be handed out again. */
async function kill(queue: EmbeddedEventQueue, receives = 3): Promise<void> {
  for (let count = 0; count < receives; count += 1) await queue.hide((await one(queue)).receipt, 0);
  expect(await queue.receive({ max: 1 })).toEqual([]);
}

function ordered(id: string, body = id) {
  return { body, group: "g", deduplicationId: id };
}

/** Rows of a table of the file. */
function countRows(table: string): number {
  const database = new DatabaseSync(join(directory, "queues.sqlite"));
  const row = database.prepare(`SELECT count(*) AS count FROM ${table}`).get();
  database.close();
  return Number(row?.count);
}

describe("times", () => {
  test.each([0.75, 0.1, 1.001])("count in parts of a second (%d)", async (seconds) => {
    const queue = open({ delaySeconds: seconds, visibilitySeconds: seconds });
    await queue.send({ body: "one" });
    for (const receiveCount of [1, 2]) {
      clock.advance(seconds * 1000 - 1);
      expect(await bodiesIn(queue)).toEqual([]);
      clock.advance(1);
      expect(await queue.receive({ max: 1 })).toMatchObject([{ receiveCount }]);
    }
  });

  test("of a clock with parts of milliseconds never let a message come too soon", async () => {
    let now = START + 0.9;
    const queue = open({ clock: () => now, delaySeconds: 0.0005 });
    await queue.send({ body: "one" });
    now = START + 1;
    expect(await queue.receive({ max: 1 })).toMatchObject([{ sentAt: START, firstReceivedAt: START + 1 }]);
  });

  test("let a message be hidden for twelve hours and not for longer, nor for less than nothing", async () => {
    const queue = open();
    await queue.send({ body: "one" });
    const { receipt } = await one(queue);
    for (const seconds of [-0.001, 43_200.001, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(queue.hide(receipt, seconds)).rejects.toFail("DEFECT");
    }
    for (const seconds of [43_200, 0.5, 0]) expect(await queue.hide(receipt, seconds)).toBe(true);
  });
});

describe("what is kept", () => {
  test("is handed out as long as it is younger than the retention, and gone then, even while it is hidden", async () => {
    const queue = open({ visibilitySeconds: 0.5 });
    await queue.send({ body: "one" });
    clock.advance(4 * DAY_MS - 1);
    const { receipt } = await one(queue);
    clock.advance(1);
    await queue.send({ body: "two" });
    expect(await queue.remove(receipt)).toBe(false);
    expect(await bodiesIn(queue)).toEqual(["two"]);
  });

  test("goes after a retention of another length where one is given", async () => {
    const queue = open({ limits: { retentionSeconds: 60 } });
    await queue.send({ body: "one" });
    clock.advance(60_000);
    expect(await bodiesIn(queue)).toEqual([]);
    expect(countRows("messages")).toBe(0);
  });

  test("has a body of the limit and not one byte more", async () => {
    const queue = open({ limits: { maxBodyBytes: 4 } });
    await queue.send({ body: "éé" });
    await expect(queue.send({ body: "éé." })).rejects.toFail("DEFECT");
    expect(await bodiesIn(queue)).toEqual(["éé"]);
  });

  test("survives a restart with its times, its receipt and its count", async () => {
    const first = open({ fifo: true, delaySeconds: 2 });
    await first.send(ordered("one"));
    clock.advance(2000);
    const { receipt } = await one(first);
    await first.send(ordered("two"));
    first.close();
    opened.splice(0);
    const second = open({ fifo: true, delaySeconds: 2 });
    clock.advance(4999);
    expect(await bodiesIn(second)).toEqual([]);
    expect(await second.remove(receipt)).toBe(true);
    expect(await bodiesIn(second)).toEqual(["two"]);
  });

  test.skipIf(WINDOWS)("is for the owner alone", () => {
    open();
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  test("is not begun over a file that is none of ours", () => {
    open().close();
    opened.splice(0);
    for (const name of ["queues.sqlite-wal", "queues.sqlite-shm"]) rmSync(join(directory, name), { force: true });
    writeFileSync(join(directory, "queues.sqlite"), "nothing that SQLite could read".repeat(100));
    expect(() => open()).toThrow("not a database");
  });
});

describe("two queues in one file", () => {
  test("have messages, receipts, duplicates and dead letters each of its own", async () => {
    const [left, right] = [open({ name: "left", fifo: true }), open({ name: "right", fifo: true })];
    await left.send(ordered("same"));
    await right.send(ordered("same"));
    const { receipt } = await one(left);
    expect(await right.remove(receipt)).toBe(false);
    expect(await right.hide(receipt, 0)).toBe(false);
    await kill(right);
    expect(left.deadLetters()).toEqual([]);
    expect(left.redrive()).toBe(0);
    expect(right.deadLetters()).toHaveLength(1);
    expect(await left.remove(receipt)).toBe(true);
  });

  test("do not hold up each other's groups", async () => {
    const [left, right] = [open({ name: "left", fifo: true }), open({ name: "right", fifo: true })];
    await left.send(ordered("one"));
    await one(left);
    await right.send(ordered("two"));
    expect(await bodiesIn(right)).toEqual(["two"]);
  });
});

describe("a group", () => {
  test("is held up by a message that a failed attempt hid for a while", async () => {
    const queue = open({ fifo: true });
    await queue.send(ordered("one"));
    await queue.send(ordered("two"));
    const [first, second] = await queue.receive({ max: 2 });
    await queue.hide(first?.receipt ?? "", 2);
    await queue.hide(second?.receipt ?? "", 0);
    expect(await bodiesIn(queue)).toEqual([]);
    clock.advance(2000);
    expect(await bodiesIn(queue)).toEqual(["one", "two"]);
  });

  test("is held up by an earlier message that is still delayed, however the delays differ", async () => {
    const slow = open({ fifo: true, delaySeconds: 5 });
    await slow.send(ordered("one"));
    const fast = open({ fifo: true, delaySeconds: 1 });
    await fast.send(ordered("two"));
    await fast.send({ ...ordered("other"), group: "h" });
    clock.advance(1000);
    expect(await bodiesIn(fast)).toEqual(["other"]);
    clock.advance(4000);
    expect(await bodiesIn(fast)).toEqual(["one", "two"]);
  });
});

describe("deduplication ids", () => {
  test("are known after a restart", async () => {
    const first = open({ fifo: true });
    await first.send(ordered("one"));
    await first.remove((await one(first)).receipt);
    first.close();
    opened.splice(0);
    await open({ fifo: true }).send(ordered("one"));
    expect(countRows("messages")).toBe(0);
  });

  test("are known for as long as was said, and not kept for longer", async () => {
    const queue = open({ fifo: true, limits: { deduplicationSeconds: 10 } });
    await queue.send(ordered("one"));
    clock.advance(9_999);
    await queue.send(ordered("one", "duplicate"));
    expect(await bodiesIn(queue)).toEqual(["one"]);
    clock.advance(1);
    await queue.send(ordered("two"));
    expect(countRows("sent_ids")).toBe(1);
  });

  test("are not taken up by a message that was refused", async () => {
    const queue = open({ fifo: true });
    await expect(queue.send({ ...ordered("one"), body: "\u0000" })).rejects.toFail("DEFECT");
    await queue.send(ordered("one"));
    expect(await bodiesIn(queue)).toEqual(["one"]);
  });
});

describe("a dead letter", () => {
  test("tells what it was, why it died, and when", async () => {
    const queue = open({ fifo: true });
    await queue.send(ordered("one"));
    const { id } = await one(queue);
    clock.advance(5000);
    await kill(queue, 2);
    expect(queue.deadLetters()).toEqual([
      {
        ...ordered("one"),
        id,
        reason: "handed out 3 times and never removed",
        receiveCount: 3,
        sentAt: START,
        diedAt: START + 5000,
      },
    ]);
  });

  test("is logged as an error, once, with the beginning of its body made visible", async () => {
    const queue = open();
    await queue.send({ body: `\u202e${"x".repeat(1000)}` });
    const { id } = await one(queue);
    clock.advance(5000);
    await kill(queue, 2);
    await bodiesIn(queue);
    expect(logged).toEqual([
      {
        level: "error",
        message: "message moved to the dead letters",
        fields: { queue: "q", message_id: id, receive_count: 3, body: `"\\u{202e}${"x".repeat(79)}"...` },
      },
    ]);
  });

  test("is put back as if it were sent at this moment, without a delay", async () => {
    const queue = open({ fifo: true, delaySeconds: 1, visibilitySeconds: 60 });
    for (const id of ["one", "two"]) {
      await queue.send(ordered(id));
      clock.advance(1000);
      await kill(queue);
    }
    const [letter] = queue.deadLetters();
    expect(queue.redrive()).toBe(2);
    expect(queue.deadLetters()).toEqual([]);
    const now = clock.now();
    expect(await queue.receive({ max: 10 })).toMatchObject([
      { ...ordered("one"), id: letter?.id, sentAt: now, firstReceivedAt: now, receiveCount: 1 },
      { ...ordered("two") },
    ]);
    expect(queue.redrive()).toBe(0);
  });

  test("is kept for fourteen days from its death, or as long as was said", async () => {
    const queue = open();
    await queue.send({ body: "one" });
    await kill(queue);
    clock.advance(14 * DAY_MS - 1);
    await queue.send({ body: "two" });
    expect(queue.deadLetters()).toHaveLength(1);
    clock.advance(1);
    await queue.send({ body: "three" });
    expect(queue.deadLetters()).toEqual([]);
    const brief = open({ name: "brief", limits: { deadLetterSeconds: 1 } });
    await brief.send({ body: "one" });
    await kill(brief);
    clock.advance(1000);
    await brief.send({ body: "two" });
    expect(brief.deadLetters()).toEqual([]);
  });

  test("is shown with as many others as are wanted, the oldest first", async () => {
    const queue = open({ maxReceives: 1 });
    for (const body of ["a", "b", "c"]) await queue.send({ body });
    for (const { receipt } of await queue.receive({ max: 3 })) await queue.hide(receipt, 0);
    expect(await bodiesIn(queue)).toEqual([]);
    expect(queue.deadLetters({ max: 2 }).map(({ body }) => body)).toEqual(["a", "b"]);
    expect(queue.deadLetters().map(({ body }) => body)).toEqual(["a", "b", "c"]);
  });
});

describe("a consumer", () => {
  test("that asks for nothing gets nothing", async () => {
    const queue = open();
    await queue.send({ body: "one" });
    expect(await queue.receive({ max: 0 })).toEqual([]);
    expect(await queue.receive({ max: -1 })).toEqual([]);
    expect(await bodiesIn(queue)).toEqual(["one"]);
  });

  test("that finds nothing waits for nobody who writes, and keeps nobody from writing", async () => {
    const queue = open({ fifo: true });
    await queue.send(ordered("one"));
    await one(queue);
    await queue.send(ordered("two"));
    const writer = new DatabaseSync(join(directory, "queues.sqlite"));
    writer.exec("BEGIN IMMEDIATE");
    const begun = performance.now();
    expect(await queue.receive({ max: 1 })).toEqual([]);
    expect(performance.now() - begun).toBeLessThan(5000);
    writer.close();
  });

  test("gets its messages from a backlog of twenty thousand without reading all of it", async () => {
    const queue = open({ fifo: true });
    fill(20_000);
    const begun = performance.now();
    for (let round = 0; round < 20; round += 1) {
      for (const { receipt } of await queue.receive({ max: 1 })) await queue.remove(receipt);
    }
    // To sort the whole backlog for each message takes several times as long.
    expect(performance.now() - begun).toBeLessThan(3000);
  });
});

/** One message of one group after another, without a write to the disk for each. */
function fill(count: number): void {
  const database = new DatabaseSync(join(directory, "queues.sqlite"));
  const insert = database.prepare(
    "INSERT INTO messages (queue, id, body, group_id, sent_at, visible_at) VALUES ('q', ?, 'x', 'g', ?, ?)",
  );
  database.exec("BEGIN");
  for (let index = 0; index < count; index += 1) insert.run(`m${index}`, START, START);
  database.exec("COMMIT");
  database.close();
}
