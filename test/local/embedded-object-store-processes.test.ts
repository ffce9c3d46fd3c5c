import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type EmbeddedObjectStore, openEmbeddedObjectStore } from "../../local/embedded-object-store.ts";
import { killProcess, startProgram, type WatchedProcess, watch } from "../kit/watched-process.ts";
import { incremented, toRound } from "./store-process.ts";

const PROGRAM = join(import.meta.dirname, "store-process.ts");
const ROOMY = { maxBytes: 1_000_000 };

let directory: string;
const children: WatchedProcess[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "skillbroker-processes-"));
});
afterEach(async () => {
  for (const child of children.splice(0)) await killProcess(child);
  rmSync(directory, { recursive: true });
});

function open(at = directory, clock = Date.now): EmbeddedObjectStore {
  return openEmbeddedObjectStore({ directory: at, clock, baseUrl: () => "http://127.0.0.1:1" });
}

function start(task: string, name = "", at = directory): WatchedProcess {
  const child = startProgram(PROGRAM, [at, task, name]);
  children.push(child);
  return child;
}

/** Key -> round of its newest put, "" when it was deleted. */
type Rounds = Map<string, string>;
type Act = { readonly key: string; readonly round: string };

/** Notes in `certain` what the acts that ended left behind; answers the one that may or may not have happened. */
function replay(lines: readonly string[], certain: Rounds): Act | undefined {
  let underWay: Act | undefined;
  for (const line of lines) {
    const [when, act, key = "", round = ""] = line.split(" ");
    const outcome = { key, round: act === "delete" ? "" : round };
    underWay = when === "begin" ? outcome : undefined;
    if (when === "end") certain.set(key, outcome.round);
  }
  return underWay;
}

/** Every key has what the acts left behind for certain, or what the act under way would leave; then that is certain. */
async function verifyAfterKill(lines: readonly string[], certain: Rounds, at = directory): Promise<void> {
  const underWay = replay(lines, certain);
  const store = open(at);
  for (const key of new Set([...certain.keys(), ...(underWay === undefined ? [] : [underWay.key])])) {
    const round = await roundAt(store, key);
    const possible = [certain.get(key) ?? "", ...(underWay?.key === key ? [underWay.round] : [])];
    expect({ key, possible }).toMatchObject({ possible: expect.arrayContaining([round]) });
    certain.set(key, round);
  }
  store.close();
}

/** Once the orphans are old, one file for each object is left. */
async function verifyAfterSweep(certain: Rounds, at = directory): Promise<void> {
  const later = open(at, () => Date.now() + 2 * 3_600_000);
  const { keys } = await later.list("", { limit: 100 });
  later.close();
  expect(readdirSync(join(at, "objects"))).toHaveLength(keys.length);
  const present = [...certain].filter(([, round]) => round !== "").map(([key]) => key);
  expect(keys).toEqual(present.sort());
}

async function roundAt(store: EmbeddedObjectStore, key: string): Promise<string> {
  const found = await store.get(key, ROOMY);
  return found === undefined ? "" : (toRound(key, found.bytes) ?? "half an object");
}

/** Starting a process is what takes the time, so several are at it, each on a directory of its own. */
const LANES = 4;

/** Kills at every {@link LANES}th step until a process gets through; answers how far that was. */
async function killStepByStep(first: number): Promise<number> {
  const at = join(directory, `lane-${first}`);
  const certain: Rounds = new Map();
  for (let step = first; step < 60; step += LANES) {
    const { lines } = await watch(start("die", String(step), at));
    await verifyAfterKill(lines, certain, at);
    if (lines.at(-1)?.startsWith("end delete") !== true) continue;
    await verifyAfterSweep(certain, at);
    return step;
  }
  throw new Error("no process got through");
}

describe("a kill leaves every acknowledged write, no half object, and no orphan that stays", () => {
  test("before each single step of a replacement and a deletion", async () => {
    const steps = await Promise.all(Array.from({ length: LANES }, (_, lane) => killStepByStep(lane + 1)));
    expect(Math.min(...steps)).toBeGreaterThan(10);
  }, 120_000);

  test("at a moment that nobody chose", async () => {
    const certain: Rounds = new Map();
    for (const [attempt, killAfter] of [1, 14, 31, 60].entries()) {
      const { lines } = await watch(start("write", `r${attempt}`), killAfter);
      await verifyAfterKill(lines, certain);
    }
    await verifyAfterSweep(certain);
  });
});

describe("several processes on one directory", () => {
  test("lose no increment of one counter", async () => {
    const store = open();
    await store.put({ key: "counter", bytes: Buffer.from("0"), mediaType: "text/plain" });
    const others = [start("increment"), start("increment")];
    // Listened to from the start: the faster one may end before the slower one has begun.
    const ends = Promise.all(others.map((child) => once(child, "exit")));
    await Promise.all(others.map((child) => once(child.stdout, "data")));
    let own = 0;
    const working = () => others.some((child) => child.exitCode === null);
    while (working()) {
      own += (await incremented(store)) ? 1 : 0;
      await yieldToEvents();
    }
    expect((await ends).map(([code]) => code)).toEqual([0, 0]);
    const found = await store.get("counter", ROOMY);
    expect(Buffer.from(found?.bytes ?? []).toString()).toBe(String(40 + own));
    store.close();
  });

  test("give an absent key to exactly one of them", async () => {
    const names = ["p", "q", "r"];
    const ends = await Promise.all(names.map((name) => watch(start("claim", name))));
    expect(ends.map(({ code, errors }) => ({ code, errors }))).toEqual(names.map(() => ({ code: 0, errors: "" })));
    const claims = ends.flatMap(({ lines }, index) => lines.map((key) => [key, names[index]] as const));
    expect(claims).toHaveLength(50);
    const store = open();
    for (const [key, name] of claims) {
      expect(Buffer.from((await store.get(key, ROOMY))?.bytes ?? []).toString()).toBe(name);
    }
    store.close();
  });

  test("let a reader see one whole version while another replaces it", async () => {
    const writer = start("replace", "w");
    await once(writer.stdout, "data");
    const store = open();
    const seen = new Set<string>();
    while (writer.exitCode === null) {
      for (let index = 0; index < 50; index += 1) seen.add(await roundAt(store, "k0"));
      await yieldToEvents();
    }
    expect(seen.size).toBeGreaterThan(1);
    expect([...seen].filter((round) => !round.startsWith("w."))).toEqual([]);
    store.close();
  });

  test("that start together on a new directory agree on one secret", async () => {
    const ends = await Promise.all(Array.from({ length: 4 }, () => watch(start("link"))));
    expect(ends.map(({ code, errors }) => ({ code, errors }))).toEqual(ends.map(() => ({ code: 0, errors: "" })));
    expect(new Set(ends.flatMap(({ lines }) => lines)).size).toBe(1);
  });
});

/** Lets the news of a child's end arrive. */
function yieldToEvents(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}
