import { describe, expect, test } from "vitest";
import type { EventQueue, RemoteCall, ToolSource } from "../../../functions/contract/ports.ts";
import { createLazyEventQueue, createLazyToolSource } from "../../../functions/wiring/lazy-ports.ts";
import { createFakeToolSource, offeredTool } from "../../kit/fake-tool-source.ts";
import "../../kit/to-fail.ts";
import { digestOfDefinition } from "../../../functions/contract/offered-tool.ts";

const A = offeredTool("a");
const CALL: RemoteCall = { server: "s1", tool: "a", digest: digestOfDefinition(A), arguments: {} };
const LIMITS = { deadline: 1, maxBytes: 1_000 };
const MESSAGE = { body: "x" };

/** A load that is counted, and fails as often as is said. */
function counted<T>(loaded: T, failures = 0) {
  let loads = 0;
  const load = async (): Promise<T> => {
    loads += 1;
    if (loads <= failures) throw new Error(`load ${loads} failed`);
    return loaded;
  };
  return { load, loads: () => loads };
}

/** A source of one tool that notes what becomes of its sessions. */
function watchedSource() {
  const source = createFakeToolSource(["s1"]);
  source.server("s1").tools = [A];
  const ends: string[] = [];
  const watched: ToolSource = {
    ...source,
    openSession: () => {
      ends.push("opened");
      return { ...source.openSession(), close: async () => void ends.push("closed") };
    },
  };
  return { watched, ends };
}

function watchedQueue() {
  const sent: unknown[] = [];
  const queue: EventQueue = { send: async (message) => void sent.push(message) };
  return { queue, sent };
}

describe("a queue that is loaded when it is needed", () => {
  test("loads nothing until it is used", async () => {
    const { queue, sent } = watchedQueue();
    const { load, loads } = counted(queue);
    const lazy = createLazyEventQueue(load);
    expect(loads()).toBe(0);
    await lazy.send(MESSAGE);
    expect([loads(), sent]).toEqual([1, [MESSAGE]]);
  });

  test("loads once for many uses, also at the same time", async () => {
    const { queue, sent } = watchedQueue();
    const { load, loads } = counted(queue);
    const lazy = createLazyEventQueue(load);
    await Promise.all([lazy.send(MESSAGE), lazy.send(MESSAGE)]);
    await lazy.send(MESSAGE);
    expect([loads(), sent.length]).toEqual([1, 3]);
  });

  test("fails all that waited for a load that fails, and the next use loads again", async () => {
    const { queue, sent } = watchedQueue();
    const { load, loads } = counted(queue, 1);
    const lazy = createLazyEventQueue(load);
    const both = await Promise.allSettled([lazy.send(MESSAGE), lazy.send(MESSAGE)]);
    expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await lazy.send(MESSAGE);
    await lazy.send(MESSAGE);
    expect([loads(), sent.length]).toEqual([2, 2]);
  });
});

describe("a tool source that is loaded when it is needed", () => {
  test("loads nothing until it is used, a session included", async () => {
    const { load, loads } = counted(watchedSource().watched);
    const lazy = createLazyToolSource(load);
    const session = lazy.openSession();
    expect(loads()).toBe(0);
    expect(await session.call(CALL, LIMITS)).toMatchObject({ ok: true });
    expect(loads()).toBe(1);
  });

  test("loads once for many uses", async () => {
    const { watched, ends } = watchedSource();
    const { load, loads } = counted(watched);
    const lazy = createLazyToolSource(load);
    const session = lazy.openSession();
    await Promise.all([session.call(CALL, LIMITS), session.call(CALL, LIMITS), lazy.list("s1", LIMITS)]);
    await lazy.openSession().call(CALL, LIMITS);
    expect([loads(), ends]).toEqual([1, ["opened", "opened"]]);
  });

  test("fails the list whose load fails, and the next one loads again", async () => {
    const { load, loads } = counted(watchedSource().watched, 1);
    const lazy = createLazyToolSource(load);
    await expect(lazy.list("s1", LIMITS)).rejects.toThrow("load 1 failed");
    expect(await lazy.list("s1", LIMITS)).toMatchObject({ ok: true });
    expect(loads()).toBe(2);
  });
});

describe("a session that is loaded when it is needed", () => {
  test("loads nothing when it is closed and made no call", async () => {
    const { load, loads } = counted(watchedSource().watched);
    await createLazyToolSource(load).openSession().close();
    expect(loads()).toBe(0);
  });

  test("fails the call whose load fails, and the next call loads again", async () => {
    const { watched, ends } = watchedSource();
    const { load, loads } = counted(watched, 1);
    const session = createLazyToolSource(load).openSession();
    await expect(session.call(CALL, LIMITS)).rejects.toThrow("load 1 failed");
    expect(await session.call(CALL, LIMITS)).toMatchObject({ ok: true });
    await session.close();
    expect([loads(), ends]).toEqual([2, ["opened", "closed"]]);
  });

  test("is closed without a rejection when its load failed, and loads nothing for it", async () => {
    const { load, loads } = counted(watchedSource().watched, 9);
    const session = createLazyToolSource(load).openSession();
    await expect(session.call(CALL, LIMITS)).rejects.toThrow("load 1 failed");
    await session.close();
    expect(loads()).toBe(1);
  });

  test("is closed although it was still being loaded", async () => {
    const { watched, ends } = watchedSource();
    const loading = Promise.withResolvers<ToolSource>();
    const session = createLazyToolSource(() => loading.promise).openSession();
    const called = session.call(CALL, LIMITS);
    const closed = session.close();
    loading.resolve(watched);
    await Promise.allSettled([called, closed]);
    expect(ends).toEqual(["opened", "closed"]);
  });

  test("makes no call once it is closed, and opens nothing that nobody would close", async () => {
    const { watched, ends } = watchedSource();
    const session = createLazyToolSource(counted(watched).load).openSession();
    await session.close();
    await expect(session.call(CALL, LIMITS)).rejects.toThrow("the session is closed");
    expect(ends).toEqual([]);
  });
});
