import { describe, expect, onTestFinished, test } from "vitest";
import { refuse } from "../../../../functions/contract/fault.ts";
import type { MCPServerConfig } from "../../../../functions/contract/mcp-server.ts";
import { LIST_CHANGED } from "../../../../functions/contract/notification.ts";
import {
  type AdapterLimits,
  type AdapterOptions,
  DEFAULT_ADAPTER_LIMITS,
  MCPToolAdapter,
} from "../../../../functions/mcp/client/adapter.ts";
import { MCPRefreshHook } from "../../../../functions/mcp/client/refresh-hook.ts";
import { createManualTimer } from "../../../kit/manual-timer.ts";
import {
  aTool,
  overHttp,
  overStdio,
  rotated,
  secretNamed,
  secretsOf,
  serveMcp,
  serveScript,
  sourceOf,
} from "../../../kit/mcp-peers.ts";
import { type Exchange, sendError, sendEvents, sendStatus, WRITTEN } from "../../../kit/mcp-script-server.ts";

type Logged = { readonly level: string; readonly message: string; readonly fields: Readonly<Record<string, unknown>> };

/** An adapter whose time passes when the test says so, and everything that it says. */
function setUp(
  config: MCPServerConfig,
  options: Partial<AdapterOptions> & { readonly limits?: Partial<AdapterLimits> } = {},
) {
  const time = createManualTimer(Date.parse("2026-11-30T12:00:00Z"));
  const logged: Logged[] = [];
  const adapter = new MCPToolAdapter({
    config,
    readSecret: async ({ name }) => refuse("SERVER_UNAVAILABLE", `no secret ${name}`),
    clock: time.now,
    timer: time.timer,
    random: () => 0,
    log: (level, message, fields = {}) => void logged.push({ level, message, fields }),
    ...options,
  });
  const heard: [string, unknown][] = [];
  adapter.addNotificationListener((method, params) => heard.push([method, params]));
  onTestFinished(() => adapter.close());
  const until = (state: string) =>
    expect.poll(() => adapter.status.state, { timeout: 10_000, interval: 5 }).toBe(state);
  const start = async () => {
    adapter.start();
    await until("connected");
  };
  return { adapter, ...time, logged, heard, until, start };
}

const nowhere = overHttp("http://127.0.0.1:1/mcp");
const changes = (heard: readonly (readonly [string, unknown])[]) =>
  heard.filter(([method]) => method === LIST_CHANGED).length;

describe("notifications", () => {
  test("go to every listener with their method and parameters", () => {
    const { adapter, heard } = setUp(nowhere);
    const also: unknown[] = [];
    adapter.addNotificationListener((...told) => also.push(told));
    adapter.dispatchNotification("notifications/x", { a: 1 });
    expect(heard).toEqual([["notifications/x", { a: 1 }]]);
    expect(also).toEqual(heard);
  });

  test("have parameters, if only none", () => {
    const { adapter, heard } = setUp(nowhere);
    adapter.dispatchNotification("notifications/x");
    expect(heard).toEqual([["notifications/x", {}]]);
  });

  test("reach the other listeners when one throws or rejects, which is logged", async () => {
    const { adapter, heard, logged } = setUp(nowhere);
    adapter.addNotificationListener(() => {
      throw new Error("thrown");
    });
    adapter.addNotificationListener(() => Promise.reject(new Error("rejected")));
    const last: string[] = [];
    adapter.addNotificationListener((method) => last.push(method));
    adapter.dispatchNotification("notifications/x");
    expect([heard.length, last]).toEqual([1, ["notifications/x"]]);
    await expect.poll(() => logged).toHaveLength(2);
    expect(logged).toMatchObject([
      {
        level: "error",
        message: "listener failed",
        fields: { server: "s1", method: "notifications/x", error: new Error("thrown") },
      },
      { level: "error", message: "listener failed", fields: { error: new Error("rejected") } },
    ]);
  });

  test("cannot be changed by one listener under the eyes of the next", () => {
    const { adapter, logged } = setUp(nowhere);
    const given = { a: 1 };
    adapter.addNotificationListener((_, params) => Object.assign(params, { a: 2 }));
    const seen: unknown[] = [];
    adapter.addNotificationListener((_, params) => seen.push(params.a));
    adapter.dispatchNotification("notifications/x", given);
    expect([seen, given, logged.length]).toEqual([[1], { a: 1 }, 1]);
  });

  test("no longer reach a listener that was removed, however often, and still reach its twin", () => {
    const { adapter } = setUp(nowhere);
    let count = 0;
    const listener = () => {
      count += 1;
    };
    const remove = adapter.addNotificationListener(listener);
    adapter.addNotificationListener(listener);
    remove();
    remove();
    adapter.dispatchNotification("notifications/x");
    expect(count).toBe(1);
  });

  test("reach those who listened when they came, also when a listener adds and removes others", () => {
    const { adapter } = setUp(nowhere);
    const order: string[] = [];
    const remove = adapter.addNotificationListener(() => {
      order.push("first");
      remove();
      adapter.addNotificationListener(() => order.push("late"));
    });
    adapter.addNotificationListener(() => order.push("second"));
    adapter.dispatchNotification("notifications/x");
    expect(order).toEqual(["first", "second"]);
    adapter.dispatchNotification("notifications/x");
    expect(order).toEqual(["first", "second", "second", "late"]);
  });
});

describe.each(["2026-07-28", "2025-11-25"] as const)("a connection with a server that speaks %s", (protocol) => {
  const serve = () => serveMcp({ tools: [aTool("a")], protocol });

  test("says once that the list has changed, when there is one, and again when the server says so", async () => {
    const server = await serve();
    const { adapter, heard, start } = setUp(overHttp(server.url));
    expect([adapter.status, server.methods()]).toEqual([{ state: "stopped" }, []]);
    await start();
    expect(adapter.status).toEqual({ state: "connected", since: Date.parse("2026-11-30T12:00:00Z"), notifies: true });
    expect(heard).toEqual([[LIST_CHANGED, {}]]);
    server.notify();
    await expect.poll(() => changes(heard)).toBe(2);
    server.notify();
    await expect.poll(() => changes(heard)).toBe(3);
    expect(server.listCalls()).toBe(0);
  });

  test("that breaks is made again after a pause, and then the list has changed, because nothing is replayed", async () => {
    const server = await serve();
    const { adapter, heard, start, until, advance, logged } = setUp(overHttp(server.url));
    await start();
    server.dropListeners();
    await until("failed");
    expect(adapter.status).toMatchObject({ reason: "ended the stream of notifications" });
    expect(logged.at(-1)).toMatchObject({
      level: "warn",
      message: "not connected",
      fields: { server: "s1", retryMs: 500 },
    });
    expect(changes(heard)).toBe(1);
    advance(499);
    expect(adapter.status.state).toBe("failed");
    advance(1);
    await until("connected");
    expect(changes(heard)).toBe(2);
    server.notify();
    await expect.poll(() => changes(heard)).toBe(3);
  });

  test("with a server that is down is tried again, each time after a longer pause", async () => {
    const server = await serve();
    server.fail(503);
    const { adapter, until, advance, now, heard } = setUp(overHttp(server.url));
    adapter.start();
    const pauses: number[] = [];
    for (let attempt = 0; attempt < 8; attempt += 1) {
      await until("failed");
      const { status } = adapter;
      const pause = status.state === "failed" ? status.retryAt - now() : 0;
      pauses.push(pause);
      advance(pause);
      await expect.poll(() => server.methods().length).toBeGreaterThan(attempt + 1);
    }
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(heard).toEqual([]);
    server.fail(undefined);
    await until("failed");
    advance(30_000);
    await until("connected");
    expect(changes(heard)).toBe(1);
  });

  test("with a server that flaps is not tried in a hurry, and one that lasted is tried at once again", async () => {
    const server = await serve();
    const { adapter, start, until, advance, logged } = setUp(overHttp(server.url));
    await start();
    const pauseAfter = async (milliseconds: number) => {
      advance(milliseconds);
      server.dropListeners();
      await until("failed");
      const pause = Number(logged.findLast(({ message }) => message === "not connected")?.fields.retryMs);
      advance(pause);
      await until("connected");
      return pause;
    };
    const { steadyMs } = DEFAULT_ADAPTER_LIMITS;
    expect([await pauseAfter(0), await pauseAfter(0), await pauseAfter(steadyMs - 1)]).toEqual([500, 1_000, 2_000]);
    expect(await pauseAfter(steadyMs)).toBe(500);
    expect(adapter.status.state).toBe("connected");
  });

  test("is looked after, so that a server that does not answer is found out", async () => {
    const server = await serve();
    const { adapter, start, until, advance } = setUp(overHttp(server.url));
    await start();
    const question = protocol === "2026-07-28" ? "server/discover" : "ping";
    const asked = () => server.methods().filter((method) => method === question).length;
    const before = asked();
    advance(DEFAULT_ADAPTER_LIMITS.checkEveryMs);
    await expect.poll(asked).toBe(before + 1);
    expect(adapter.status.state).toBe("connected");
    server.fail("stall", { method: question });
    // The answer to the first question must have come, so that there is a next one to wait for.
    await new Promise((done) => setImmediate(done));
    await expect
      .poll(() => {
        if (asked() === before + 1) advance(DEFAULT_ADAPTER_LIMITS.checkEveryMs);
        return asked();
      })
      .toBeGreaterThan(before + 1);
    advance(DEFAULT_ADAPTER_LIMITS.checkMs);
    await until("failed");
    expect(adapter.status).toMatchObject({ reason: "did not answer in time" });
  });

  test("is gone after close, says nothing more, and can be made again", async () => {
    const server = await serve();
    const { adapter, heard, start, pending } = setUp(overHttp(server.url));
    await start();
    await adapter.close();
    await expect.poll(() => server.listeners()).toBe(0);
    server.notify();
    expect([adapter.status, changes(heard), pending()]).toEqual([{ state: "stopped" }, 1, []]);
    await adapter.close();
    await start();
    expect(changes(heard)).toBe(2);
  });

  test("is made once, however often it is asked for", async () => {
    const server = await serve();
    const { adapter, start } = setUp(overHttp(server.url));
    adapter.start();
    await start();
    adapter.start();
    await expect.poll(() => server.listeners()).toBe(1);
    expect(server.methods().filter((method) => method === "server/discover")).toHaveLength(1);
  });

  test("can be left while it is being made, or waited for", async () => {
    const server = await serve();
    server.fail("stall");
    const { adapter, pending, until } = setUp(overHttp(server.url));
    adapter.start();
    await expect.poll(() => server.methods()).toContain("server/discover");
    await adapter.close();
    expect([adapter.status.state, pending()]).toEqual(["stopped", []]);
    server.fail(503);
    adapter.start();
    await until("failed");
    await adapter.close();
    expect([adapter.status.state, pending()]).toEqual(["stopped", []]);
  });

  test("that is not made in its time is given up and tried again", async () => {
    const server = await serve();
    server.fail("stall");
    const { adapter, advance, until } = setUp(overHttp(server.url));
    adapter.start();
    await expect.poll(() => server.methods()).toContain("server/discover");
    advance(DEFAULT_ADAPTER_LIMITS.connectMs);
    await until("failed");
    expect(adapter.status).toMatchObject({ reason: "did not answer in time" });
  });

  test("drives a refresh that sees the list as it is at the end", async () => {
    const server = await serve();
    const { adapter, start, timer, now, advance } = setUp(overHttp(server.url));
    const seen: (readonly string[])[] = [];
    const refreshAll = async () => {
      const listed = await sourceOf(overHttp(server.url)).list("s1", { deadline: Date.now() + 30_000 });
      seen.push(listed.ok ? listed.value.tools.map(({ name }) => name) : []);
    };
    new MCPRefreshHook(adapter, { refreshAll }, 0.5, { timer, clock: now, log: () => undefined });
    await start();
    for (const names of [["a"], ["a", "b"], ["b", "c"]]) server.setTools(names.map((name) => aTool(name)));
    server.notify();
    server.notify();
    advance(500);
    await expect.poll(() => seen.at(-1)).toEqual(["b", "c"]);
  });
});

describe("a server that has no stream of notifications", () => {
  test("is connected with, and it is said that it does not say anything", async () => {
    const server = await serveScript({ protocol: "2025-11-25" }, () => undefined);
    const { adapter, start, heard, logged } = setUp(overHttp(server.url));
    await start();
    expect(adapter.status).toMatchObject({ state: "connected", notifies: false });
    expect(changes(heard)).toBe(1);
    expect(logged).toContainEqual({
      level: "warn",
      message: "does not say when its list changes",
      fields: { server: "s1" },
    });
  });

  test("because it does not know any is not asked for one", async () => {
    const server = await serveScript({ protocol: "2026-07-28" }, ({ method }) => {
      if (method !== "server/discover") return undefined;
      return {
        resultType: "complete",
        supportedVersions: ["2026-07-28"],
        capabilities: { tools: {} },
        ttlMs: 0,
        cacheScope: "private",
      };
    });
    const { adapter, start } = setUp(overHttp(server.url));
    await start();
    expect([adapter.status, server.methods]).toMatchObject([{ notifies: false }, ["server/discover"]]);
  });

  test.each<[string, (exchange: Exchange) => unknown]>([
    ["HTTP 404", (exchange) => sendStatus(exchange, 404)],
    ["JSON-RPC error -32601", (exchange) => sendError(exchange, { code: -32601, message: "Method not found" })],
  ])("although it announces one, and says so by %s, is connected with", async (_, answer) => {
    const server = await serveScript({ protocol: "2026-07-28" }, (exchange) =>
      exchange.method === "subscriptions/listen" ? answer(exchange) : undefined,
    );
    const { adapter, start, heard } = setUp(overHttp(server.url));
    await start();
    expect([adapter.status, changes(heard)]).toMatchObject([{ notifies: false }, 1]);
  });

  test("because it is broken is tried again", async () => {
    const server = await serveScript({ protocol: "2025-11-25" }, (exchange) =>
      exchange.method === "GET" ? sendStatus(exchange, 502) : undefined,
    );
    const { adapter, until } = setUp(overHttp(server.url));
    adapter.start();
    await until("failed");
    expect(adapter.status).toMatchObject({ reason: "refused the stream of notifications (HTTP 502)" });
  });

  test("until it says something is taken for connected, and once it does the list has changed again", async () => {
    const waiting: Exchange[] = [];
    const server = await serveScript({ protocol: "2025-11-25" }, (exchange) => {
      if (exchange.method !== "GET") return undefined;
      waiting.push(exchange);
      return WRITTEN;
    });
    const { adapter, heard, advance, until } = setUp(overHttp(server.url));
    adapter.start();
    await expect.poll(() => waiting.length).toBe(1);
    expect(adapter.status.state).toBe("connecting");
    advance(DEFAULT_ADAPTER_LIMITS.streamMs);
    await until("connected");
    expect(changes(heard)).toBe(1);
    for (const exchange of waiting)
      sendEvents(exchange, [{ jsonrpc: "2.0", method: "notifications/y", params: { b: 2 } }]);
    await expect
      .poll(() => heard)
      .toEqual([
        [LIST_CHANGED, {}],
        [LIST_CHANGED, {}],
        ["notifications/y", { b: 2 }],
      ]);
  });
});

test("a connection can be left while its stream is waited for", async () => {
  const server = await serveScript({ protocol: "2025-11-25" }, ({ method }) =>
    method === "GET" ? WRITTEN : undefined,
  );
  const { adapter, pending } = setUp(overHttp(server.url));
  adapter.start();
  await expect.poll(() => server.methods).toContain("GET");
  await adapter.close();
  expect([adapter.status.state, pending()]).toEqual(["stopped", []]);
});

describe("a stream that carries more than is read of one", () => {
  test("is opened anew", async () => {
    const server = await serveScript({ protocol: "2025-11-25" }, (exchange) => {
      if (exchange.method !== "GET") return undefined;
      const note = { jsonrpc: "2.0", method: "notifications/x", params: { a: "x".repeat(1_000) } };
      return sendEvents(
        exchange,
        Array.from({ length: 20 }, () => note),
      );
    });
    const { adapter, until } = setUp(overHttp(server.url), { limits: { maxBytes: 10_000 } });
    adapter.start();
    await until("failed");
    expect(adapter.status).toMatchObject({ state: "failed" });
  });
});

describe("a server that is a process", () => {
  test.each(["honest", "telling"])("and %s is heard, and ends with the connection", async (manner) => {
    const { adapter, start, heard } = setUp(overStdio({ manner, tools: [aTool("a")] }));
    await start();
    await expect.poll(() => changes(heard)).toBe(manner === "telling" ? 2 : 1);
    expect(adapter.status).toMatchObject({ notifies: true });
    await adapter.close();
    expect(adapter.status).toEqual({ state: "stopped" });
  });

  test("that ends is started again", async () => {
    const { adapter, start, until, advance, heard } = setUp(overStdio({ manner: "brief" }));
    await start();
    await until("failed");
    expect(adapter.status).toMatchObject({ reason: "its process ended (4)" });
    advance(500);
    await until("connected");
    expect(changes(heard)).toBe(2);
  });

  test("that cannot be started is tried again", async () => {
    const { adapter, until } = setUp({ ...overStdio({}), command: "no-such-command-anywhere" });
    adapter.start();
    await until("failed");
    expect(adapter.status).toMatchObject({ reason: "its process cannot be used (ENOENT)" });
  });
});

describe("a credential", () => {
  test("is read anew at each attempt, so that a new one is used without a restart", async () => {
    const server = await serveMcp({ tools: [], authorization: "the-new-token" });
    let token = "the-old-token";
    const { adapter, until, advance } = setUp(overHttp(server.url, { authorization: secretNamed("TOKEN") }), {
      readSecret: (reference) => secretsOf({ TOKEN: token })(reference),
    });
    adapter.start();
    await until("failed");
    expect(adapter.status).toMatchObject({
      reason: `refused the credential (HTTP 401); check its header "authorization" (${secretNamed("TOKEN")})`,
    });
    token = "the-new-token";
    advance(500);
    await until("connected");
  });

  test("is the one that is stored now, although an older one is remembered", async () => {
    const server = await serveMcp({ tools: [], authorization: "the-new-token" });
    const { start, logged } = setUp(overHttp(server.url, { authorization: secretNamed("TOKEN") }), {
      readSecret: rotated("the-old-token", "the-new-token"),
    });
    await start();
    expect(logged).toMatchObject([{ level: "info", message: "connected" }]);
  });

  test("that is missing is named", async () => {
    const { adapter, until } = setUp(overHttp("http://127.0.0.1:1", { authorization: secretNamed("TOKEN") }));
    adapter.start();
    await until("failed");
    expect(adapter.status).toMatchObject({ reason: "no secret TOKEN" });
  });
});
