import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EmbeddedEventQueue } from "../../local/embedded-event-queue.ts";
import { killProcess, startProgram, type WatchedProcess, watch } from "../kit/watched-process.ts";
import { MAX_RECEIVES, openTestQueue, ordered, STOP, VISIBILITY_SECONDS } from "./queue-process.ts";

const PROGRAM = join(import.meta.dirname, "queue-process.ts");

let directory: string;
const children: WatchedProcess[] = [];
const opened: EmbeddedEventQueue[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "skillbroker-queue-processes-"));
});
afterEach(async () => {
  for (const queue of opened.splice(0)) queue.close();
  for (const child of children.splice(0)) await killProcess(child);
  rmSync(directory, { recursive: true });
});

/** `later` in ms: what the queue is like when so much time has passed. */
function open(fifo: boolean, { at = directory, later = 0 } = {}): EmbeddedEventQueue {
  const queue = openTestQueue(at, fifo, () => Date.now() + later);
  opened.push(queue);
  return queue;
}

function start(task: string, name = "", at = directory): WatchedProcess {
  const child = startProgram(PROGRAM, [at, task, name]);
  children.push(child);
  return child;
}

/** Everything that there is, in its order, and gone then. */
async function drain(queue: EmbeddedEventQueue): Promise<readonly string[]> {
  const bodies: string[] = [];
  for (;;) {
    const messages = await queue.receive({ max: 10 });
    if (messages.length === 0) return bodies;
    for (const { body, receipt } of messages) {
      bodies.push(body);
      await queue.remove(receipt);
    }
  }
}

describe("several processes on one file", () => {
  test("that consume together handle every message once", async () => {
    const consumers = [start("consume"), start("consume")];
    const begun = Promise.all(consumers.map((child) => once(child.stdout, "data")));
    const ends = Promise.all(consumers.map((child) => watch(child)));
    await begun;
    const queue = open(false);
    const bodies = Array.from({ length: 200 }, (_, index) => `message ${index}`);
    for (const body of bodies) await queue.send({ body });
    for (const _ of consumers) await queue.send({ body: STOP });
    const ended = await ends;
    expect(ended.map(({ code, errors }) => ({ code, errors }))).toEqual(ended.map(() => ({ code: 0, errors: "" })));
    const handled = ended.flatMap(({ lines }) => lines.filter((line) => line !== "begun"));
    expect(handled.sort()).toEqual([...bodies].sort());
  });

  test("that start together on a new directory do not stumble over each other, and send one message", async () => {
    const ends = await Promise.all(Array.from({ length: 4 }, () => watch(start("open"))));
    expect(ends.map(({ code, errors }) => ({ code, errors }))).toEqual(ends.map(() => ({ code: 0, errors: "" })));
    expect(await drain(open(true))).toEqual(["same"]);
  });
});

describe("a killed process", () => {
  test("loses nothing that it had in hand: it comes again after the visibility timeout, in its order", async () => {
    const queue = open(true);
    for (const id of ["first", "second"]) await queue.send(ordered(id));
    const { lines } = await watch(start("hold"), 1);
    expect(lines).toEqual(["first"]);
    expect(await queue.receive({ max: 10 })).toEqual([]);
    const later = open(true, { later: VISIBILITY_SECONDS * 1000 });
    expect(await later.receive({ max: 10 })).toMatchObject([
      { body: "first", receiveCount: 2 },
      { body: "second", receiveCount: 1 },
    ]);
  });

  test("has sent what was acknowledged, each once and in its order, and at most one more", async () => {
    for (const [attempt, killAfter] of [1, 7, 40].entries()) {
      const { lines } = await watch(start("send", `s${attempt}`), killAfter);
      expect(lines.length).toBeGreaterThanOrEqual(killAfter);
      const bodies = await drain(open(true));
      expect(bodies.slice(0, lines.length)).toEqual(lines);
      expect(bodies.length - lines.length).toBeLessThanOrEqual(1);
    }
  });

  test("has its deduplication ids known", async () => {
    const { lines } = await watch(start("send", "s"), 5);
    const queue = open(true);
    const bodies = await drain(queue);
    for (const id of bodies) await queue.send(ordered(id));
    expect(bodies).toEqual(expect.arrayContaining([...lines]));
    expect(await drain(queue)).toEqual([]);
  });
});

/** Starting a process is what takes the time, so several are at it, each on a directory of its own. */
const LANES = 4;

/** Kills at every {@link LANES}th step until a process gets through; answers how far that was. */
async function killStepByStep(first: number): Promise<number> {
  for (let step = first; step < 80; step += LANES) {
    const at = join(directory, `step-${step}`);
    await prepare(at);
    const { lines } = await watch(start("die", String(step), at));
    await verify(at);
    if (lines.includes("done")) return step;
  }
  throw new Error("no process got through");
}

/** One message that would die at the next receive, and one that would be handed out. */
async function prepare(at: string): Promise<void> {
  const queue = open(true, { at });
  await queue.send(ordered("dying"));
  for (let count = 0; count < MAX_RECEIVES; count += 1) {
    const [message] = await queue.receive({ max: 1 });
    await queue.hide(message?.receipt ?? "", 0);
  }
  await queue.send(ordered("waiting"));
}

/** The dying message is in one place, and what was sent, or is sent again now, is there once. */
async function verify(at: string): Promise<void> {
  const queue = open(true, { at, later: VISIBILITY_SECONDS * 1000 });
  await queue.send(ordered("sent"));
  expect(await drain(queue)).toEqual(["waiting", "sent"]);
  expect(queue.deadLetters().map(({ body }) => body)).toEqual(["dying"]);
}

test("a kill before each single step of sending, of dying and of handing out leaves all of it done or nothing", async () => {
  const steps = await Promise.all(Array.from({ length: LANES }, (_, lane) => killStepByStep(lane + 1)));
  expect(Math.min(...steps)).toBeGreaterThan(12);
}, 120_000);
