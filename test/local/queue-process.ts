import { writeSync } from "node:fs";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { type EmbeddedEventQueue, openEmbeddedEventQueue } from "../../local/embedded-event-queue.ts";

/**
 * A process of its own on a queue's directory, for what only a second process can show. Started as
 * `node queue-process.ts <directory> <task> <name>`; every line on its standard output is there before it goes on.
 */

export const STOP = "stop";
export const VISIBILITY_SECONDS = 60;
export const MAX_RECEIVES = 3;

/** The same queue in every process; the clock is real unless another is given. */
export function openTestQueue(directory: string, fifo: boolean, clock = Date.now): EmbeddedEventQueue {
  return openEmbeddedEventQueue({
    directory,
    name: fifo ? "ordered.fifo" : "standard",
    fifo,
    clock,
    log: () => undefined,
    delaySeconds: 0,
    visibilitySeconds: VISIBILITY_SECONDS,
    maxReceives: MAX_RECEIVES,
  });
}

export function ordered(id: string) {
  return { body: id, group: "g", deduplicationId: id };
}

type Task = (directory: string, name: string) => Promise<void>;

const TASKS: ReadonlyMap<string, Task> = new Map([
  ["open", openOnly],
  ["consume", consumeUntilStopped],
  ["hold", holdForEver],
  ["send", sendForEver],
  ["die", dieAtStep],
]);

async function openOnly(directory: string): Promise<void> {
  const queue = openTestQueue(directory, true);
  await queue.send(ordered("same"));
  queue.close();
}

async function consumeUntilStopped(directory: string): Promise<void> {
  const queue = openTestQueue(directory, false);
  say("begun");
  for (;;) {
    for (const { body, receipt } of await queue.receive({ max: 1 })) {
      await queue.remove(receipt);
      if (body === STOP) return;
      say(body);
    }
  }
}

/** Takes one message and does nothing with it. */
async function holdForEver(directory: string): Promise<void> {
  const queue = openTestQueue(directory, true);
  for (const { body } of await queue.receive({ max: 1 })) say(body);
  await new Promise((done) => setTimeout(done, 1_000_000));
}

/** Says each message once it is acknowledged. */
async function sendForEver(directory: string, name: string): Promise<void> {
  const queue = openTestQueue(directory, true);
  for (let index = 0; ; index += 1) {
    await queue.send(ordered(`${name}.${index}`));
    say(`${name}.${index}`);
  }
}

/** Sends one message, takes another, lets a third die, and is killed just before the step of that number. */
async function dieAtStep(directory: string, step: string): Promise<void> {
  const queue = openTestQueue(directory, true);
  killAtStep(Number(step));
  await queue.send(ordered("sent"));
  await queue.receive({ max: 10 });
  say("done");
}

/** A step is a call to the database that may change it. */
function killAtStep(last: number): void {
  let steps = 0;
  const count = () => {
    steps += 1;
    if (steps === last) process.kill(process.pid, "SIGKILL");
  };
  callBefore(StatementSync.prototype, "run", count);
  callBefore(DatabaseSync.prototype, "exec", count);
}

function callBefore(owner: object, name: string, count: () => void): void {
  const original = Reflect.get(owner, name);
  Reflect.set(owner, name, function (this: unknown, ...values: unknown[]) {
    count();
    return Reflect.apply(original, this, values);
  });
}

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

if (import.meta.main) {
  const [directory = "", task = "", name = ""] = process.argv.slice(2);
  await TASKS.get(task)?.(directory, name);
}
