import { describe, expect, test } from "vitest";
import { refuse } from "../../../functions/contract/fault.ts";
import type { ReceivedMessage } from "../../../functions/contract/ports.ts";
import { takeNotifications } from "../../../functions/refresh/take-notifications.ts";
import { takeRefreshes } from "../../../functions/refresh/take-refreshes.ts";
import { offeredTool } from "../../kit/fake-tool-source.ts";
import { createMemoryEventQueue } from "../../kit/memory-event-queue.ts";
import { listChanged, received, refreshWorld, START } from "./refresh-world.ts";

const W = 1_000;
const BUCKET = START / W;
const message = (bucket: number, changes: Partial<ReceivedMessage> = {}) =>
  received({ server: "s1", bucket, sources: ["caller"] }, { firstReceivedAt: (bucket + 1) * W + 500, ...changes });

describe("a refresh message", () => {
  test("makes the server's list be fetched and published, and answers every notification that came before", async () => {
    const world = refreshWorld(["s1", "s2"]);
    world.toolSource.server("s1").tools = [offeredTool("a")];
    expect(await takeRefreshes([message(BUCKET)], world.context)).toEqual(new Map());
    expect(await world.published()).toMatchObject({
      generation: 1,
      cause: { type: "notification", servers: ["s1"] },
      servers: [{ name: "s1", covered_until: (BUCKET + 1) * W + 500 }],
    });
    expect(world.toolSource.server("s2").lists).toBe(0);
  });

  test("that is delivered again, even long after, fetches nothing more", async () => {
    const world = refreshWorld(["s1"]);
    await takeRefreshes([message(BUCKET)], world.context);
    world.clock.advance(3600_000);
    await takeRefreshes([message(BUCKET, { receiveCount: 2 })], world.context);
    expect(world.toolSource.server("s1").lists).toBe(1);
  });

  test("of a server that fails is done: its last good list stays, and trying again is the schedule's matter", async () => {
    const world = refreshWorld(["s1"]);
    world.toolSource.server("s1").failing = "down";
    expect(await takeRefreshes([message(BUCKET)], world.context)).toEqual(new Map());
    expect(await world.published()).toMatchObject({
      servers: [{ status: "unlisted", reason: "down", covered_until: 0 }],
    });
  });

  test.each([
    ["no JSON", "{"],
    ["another shape", { server: "s1" }],
    ["an unknown field", { server: "s1", bucket: 1, sources: ["caller"], urgent: true }],
    ["an unknown server", { server: "s9", bucket: 1, sources: ["caller"] }],
  ])("of %s fails alone, with the reason, and loses no neighbour", async (_, body) => {
    const world = refreshWorld(["s1"]);
    const failed = await takeRefreshes([received(body, { id: "bad" }), message(BUCKET)], world.context);
    expect([...failed.keys()]).toEqual(["bad"]);
    expect(failed.get("bad")).toMatchObject({ code: "REQUEST_INVALID" });
    expect(world.toolSource.server("s1").lists).toBe(1);
  });

  test("fails, to be delivered again, when the catalog cannot be published", async () => {
    const world = refreshWorld(["s1"]);
    const store = {
      ...world.store,
      put: async () => {
        throw new Error("the store is out of order");
      },
    };
    const failed = await takeRefreshes([message(BUCKET)], { ...world.context, store });
    expect([...failed.keys()]).toEqual(["m1"]);
    expect(failed.get("m1")).toMatchObject({ code: "DEFECT" });
  });

  test("of a slow server holds up no other of its batch", async () => {
    const world = refreshWorld(["s1", "s2"]);
    let answer: () => void = () => undefined;
    const stuck = new Promise<void>((done) => {
      answer = done;
    });
    const toolSource = {
      ...world.toolSource,
      list: async (server: string, limits: { readonly deadline: number }) => {
        if (server === "s1") await stuck;
        return world.toolSource.list(server, limits);
      },
    };
    const other = received({ server: "s2", bucket: BUCKET, sources: ["caller"] }, { id: "m2" });
    const taking = takeRefreshes([message(BUCKET), other], { ...world.context, toolSource });
    await expect.poll(async () => (await world.published())?.servers.map(({ name }) => name)).toEqual(["s2"]);
    answer();
    expect(await taking).toEqual(new Map());
    expect(await world.published()).toMatchObject({ generation: 2, servers: [{ name: "s1" }, { name: "s2" }] });
  });

  test("is one of many of a server that hangs: all of them together cost one time limit", async () => {
    const world = refreshWorld(["s1"]);
    const toolSource = {
      ...world.toolSource,
      list: async (server: string, limits: { readonly deadline: number }) => {
        world.clock.advance(limits.deadline - world.clock.now());
        await world.toolSource.list(server, { deadline: Number.POSITIVE_INFINITY });
        return refuse("SERVER_UNAVAILABLE", "did not answer in time");
      },
    };
    const buckets = Array.from({ length: 10 }, (_, index) => message(BUCKET + index * 40, { id: `m${index}` }));
    expect(await takeRefreshes(buckets, { ...world.context, toolSource })).toEqual(new Map());
    expect(world.toolSource.server("s1").lists).toBe(1);
    expect(world.clock.now() - START).toBe(world.context.listTimeoutMs);
  });

  test("of a newer bucket answers an older one that came after it in the same batch", async () => {
    const world = refreshWorld(["s1"]);
    const together = { firstReceivedAt: (BUCKET + 9) * W };
    await takeRefreshes(
      [message(BUCKET, { id: "a", ...together }), message(BUCKET + 5, { id: "b", ...together })],
      world.context,
    );
    expect(world.toolSource.server("s1").lists).toBe(1);
    expect(await world.published()).toMatchObject({ servers: [{ covered_until: (BUCKET + 9) * W }] });
  });

  test("is not answered by what a clock wrote that was ahead and has gone back", async () => {
    const world = refreshWorld(["s1"]);
    world.clock.advance(20 * W);
    await takeRefreshes([message(BUCKET, { firstReceivedAt: START + 3600_000 })], world.context);
    await takeRefreshes([message(BUCKET + 10)], world.context);
    expect(world.toolSource.server("s1").lists).toBe(2);
    expect(await world.published()).toMatchObject({ servers: [{ covered_until: (BUCKET + 11) * W + 500 }] });
  });

  test.each([
    [["caller", "schedule"], "notification"],
    [["schedule"], "schedule"],
    [["schedule", "watch"], "watch"],
  ])("of the sources %s is told as %s", async (sources, type) => {
    const world = refreshWorld(["s1"]);
    await takeRefreshes([received({ server: "s1", bucket: 1, sources })], world.context);
    expect(await world.published()).toMatchObject({ cause: { type } });
  });
});

/** The whole path by hand: notifications at these times, every message taken as soon as it may be. */
async function play(times: readonly number[], during: (at: number) => Promise<void> = async () => undefined) {
  const world = refreshWorld(["s1"]);
  const queue = createMemoryEventQueue({
    clock: world.clock.now,
    fifo: true,
    delayMs: world.context.rules.delayMs,
    visibilityMs: 60_000,
    maxReceives: 5,
  });
  const context = { ...world.context, refreshQueue: queue };
  const fetched: number[] = [];
  const due = new Set([...times.map((at) => START + at)]);
  for (const at of times) due.add(START + at + world.context.rules.delayMs);
  for (const at of [...due].toSorted((a, b) => a - b)) {
    world.clock.advance(at - world.clock.now());
    const before = world.toolSource.server("s1").lists;
    if (times.includes(at - START)) {
      await takeNotifications(
        [received(listChanged("s1"), { id: `n${at}`, sentAt: at, firstReceivedAt: at })],
        context,
      );
    }
    for (const taken of await queue.receive({ max: 10 })) {
      await takeRefreshes([taken], context);
      await queue.remove(taken.receipt);
    }
    if (world.toolSource.server("s1").lists > before) fetched.push(at - START);
    await during(at - START);
  }
  return { fetched, world };
}

describe("on a timeline of notifications", () => {
  test("two hundred within two seconds fetch the list once or twice", async () => {
    const { fetched } = await play(Array.from({ length: 200 }, (_, index) => index * 10));
    expect(fetched.length).toBeGreaterThanOrEqual(1);
    expect(fetched.length).toBeLessThanOrEqual(2);
  });

  test("one every 0.9 s for 54 s fetches at least every longest wait, and once after the last", async () => {
    const times = Array.from({ length: 60 }, (_, index) => index * 900);
    const { fetched, world } = await play(times);
    const bound = world.context.rules.longestWaitMs + world.context.rules.delayMs + W;
    [0, ...fetched].forEach((at, index, all) => {
      if (index > 0) expect(at - (all[index - 1] ?? 0)).toBeLessThanOrEqual(bound);
    });
    expect(fetched.length).toBeLessThan(times.length / 5);
    expect(fetched.at(-1)).toBeGreaterThan(53_100);
  });

  test("one after a minute of quiet fetches again: no id of the first holds it back", async () => {
    const { fetched } = await play([0, 60_000]);
    expect(fetched).toEqual([1_500, 61_500]);
  });

  test("one that comes while the list is being fetched makes it be fetched once more", async () => {
    const world = refreshWorld(["s1"]);
    const sent: { readonly body: string }[] = [];
    const refreshQueue = { send: async (kept: { readonly body: string }) => void sent.push(kept) };
    const context = { ...world.context, refreshQueue };
    const toolSource = {
      ...world.toolSource,
      list: async (server: string, limits: { readonly deadline: number }) => {
        const listed = await world.toolSource.list(server, limits);
        if (world.toolSource.server("s1").lists === 1) {
          const at = (BUCKET + 1) * W + 700;
          await takeNotifications([received(listChanged("s1"), { sentAt: at, firstReceivedAt: at })], context);
        }
        return listed;
      },
    };
    await takeRefreshes([message(BUCKET)], { ...context, toolSource });
    expect(sent).toHaveLength(1);
    await takeRefreshes([received(sent[0]?.body ?? "", { firstReceivedAt: (BUCKET + 3) * W })], {
      ...context,
      toolSource,
    });
    expect(world.toolSource.server("s1").lists).toBe(2);
  });
});
