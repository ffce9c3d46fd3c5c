import fc from "fast-check";
import { describe, expect, expectTypeOf, onTestFinished, test } from "vitest";
import { createLookup, type LendingServer } from "../../../../functions/catalog/lent-tools.ts";
import type { SkillRefreshResult } from "../../../../functions/catalog/refresh-result.ts";
import { SkillRegistry } from "../../../../functions/catalog/skill-registry.ts";
import { refuse } from "../../../../functions/contract/fault.ts";
import type { MCPServerConfig } from "../../../../functions/contract/mcp-server.ts";
import { LIST_CHANGED } from "../../../../functions/contract/notification.ts";
import { mcpRef } from "../../../../functions/contract/offered-tool.ts";
import type { Log } from "../../../../functions/contract/ports.ts";
import { MCPToolAdapter } from "../../../../functions/mcp/client/adapter.ts";
import { MCPRefreshHook } from "../../../../functions/mcp/client/refresh-hook.ts";
import { createManualTimer } from "../../../kit/manual-timer.ts";
import { ample, aTool, overHttp, secretsOf, serveMcp, sourceOf } from "../../../kit/mcp-peers.ts";
import { catalogOf, instructions } from "../../catalog/catalogs.ts";

type Setup = {
  readonly debounceSeconds?: number;
  readonly longestWaitSeconds?: number;
  readonly refreshAll?: () => unknown;
};

/** A hook on an adapter that is connected with nobody: notifications are dispatched by hand. */
function setUp({ debounceSeconds, longestWaitSeconds, refreshAll = () => undefined }: Setup = {}) {
  const { timer, now, advance, pending } = createManualTimer();
  const logged: { level: string; message: string; fields: unknown }[] = [];
  const log = (level: string, message: string, fields: object = {}) => logged.push({ level, message, fields });
  const adapter = new MCPToolAdapter({
    config: { name: "my-server", transport: "stdio", command: "my-mcp", args: [], env: new Map() },
    readSecret: async () => refuse("SERVER_UNAVAILABLE", "no secrets here"),
    clock: now,
    timer,
    random: () => 0,
    log,
  });
  const longest = longestWaitSeconds === undefined ? {} : { longestWaitSeconds };
  const hook = new MCPRefreshHook(adapter, { refreshAll }, debounceSeconds, { timer, clock: now, log, ...longest });
  const notify = (method = LIST_CHANGED) => adapter.dispatchNotification(method);
  return { hook, adapter, notify, advance, pending, now, logged };
}

/** A turn of the event loop: what follows from what has happened has followed. */
const turn = () => new Promise((done) => setImmediate(done));

/** Refreshes that end when the test says so. */
function manualRefreshes() {
  const running: PromiseWithResolvers<void>[] = [];
  let overlaps = 0;
  const refreshAll = () => {
    if (running.length > 0) overlaps += 1;
    const run = Promise.withResolvers<void>();
    running.push(run);
    return run.promise;
  };
  const end = async (how: "well" | "badly" = "well") => {
    const run = running.shift();
    if (how === "well") run?.resolve();
    else run?.reject(new Error("no"));
    await turn();
  };
  return { refreshAll, end, overlaps: () => overlaps, running: () => running.length };
}

describe("the window", () => {
  test("is half a second when nothing is said", () => {
    const { hook, notify, advance } = setUp();
    notify();
    advance(499);
    expect(hook.refreshCount).toBe(0);
    advance(1);
    expect(hook.refreshCount).toBe(1);
  });

  test("begins anew at each notification, and one refresh follows when it is quiet", () => {
    const { hook, notify, advance } = setUp();
    notify();
    advance(400);
    notify();
    advance(400);
    notify();
    advance(499);
    expect(hook.refreshCount).toBe(0);
    advance(1);
    expect(hook.refreshCount).toBe(1);
    advance(60_000);
    expect(hook.refreshCount).toBe(1);
  });

  test("makes one refresh of a storm of two hundred notifications", () => {
    const { hook, notify, advance } = setUp();
    for (let count = 0; count < 200; count += 1) {
      notify();
      advance(10);
    }
    advance(500);
    expect(hook.refreshCount).toBe(1);
  });

  test("may be nothing at all", () => {
    const { hook, notify, advance } = setUp({ debounceSeconds: 0 });
    notify();
    advance(0);
    expect(hook.refreshCount).toBe(1);
  });

  test.each([-1, -0.001, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    "of %s seconds is refused with a RangeError, and nothing listens",
    (seconds) => {
      expect(() => setUp({ debounceSeconds: seconds })).toThrow(RangeError);
      expect(() => setUp({ debounceSeconds: seconds })).toThrow("debounceSeconds must be a finite number of seconds");
      expect(() => setUp({ longestWaitSeconds: seconds })).toThrow(RangeError);
    },
  );

  test("is not opened by other notifications", () => {
    const { hook, notify, advance, pending } = setUp();
    notify("notifications/prompts/list_changed");
    notify("notifications/tools/list_changed ");
    expect(pending()).toEqual([]);
    advance(60_000);
    expect(hook.refreshCount).toBe(0);
  });
});

describe("the longest wait", () => {
  test("ends although notifications never rest", async () => {
    const { hook, notify, advance, now } = setUp();
    const refreshedAt: number[] = [];
    for (let time = 0; time < 60_000; time += 100) {
      const before = hook.refreshCount;
      notify();
      advance(100);
      await turn();
      if (hook.refreshCount > before) refreshedAt.push(now());
    }
    expect(refreshedAt).toEqual([15_000, 30_000, 45_000, 60_000]);
  });

  test("is counted from the first notification that no refresh has answered", async () => {
    const { hook, notify, advance } = setUp({ longestWaitSeconds: 2 });
    notify();
    advance(500);
    expect(hook.refreshCount).toBe(1);
    await turn();
    advance(10_000);
    for (let count = 0; count < 4; count += 1) {
      notify();
      advance(400);
    }
    expect(hook.refreshCount).toBe(1);
    notify();
    advance(399);
    expect(hook.refreshCount).toBe(1);
    advance(1);
    expect(hook.refreshCount).toBe(2);
  });

  test("that is shorter than the window is the window", () => {
    const { hook, notify, advance } = setUp({ debounceSeconds: 5, longestWaitSeconds: 1 });
    notify();
    advance(1_000);
    expect(hook.refreshCount).toBe(1);
  });
});

describe("a notification while a refresh runs", () => {
  test("gives exactly one more, once the first has ended", async () => {
    const { refreshAll, end, overlaps } = manualRefreshes();
    const { hook, notify, advance } = setUp({ refreshAll });
    notify();
    advance(500);
    for (let count = 0; count < 3; count += 1) {
      notify();
      advance(500);
    }
    expect(hook.refreshCount).toBe(1);
    await end();
    expect(hook.refreshCount).toBe(2);
    await end();
    advance(60_000);
    expect([hook.refreshCount, overlaps()]).toEqual([2, 0]);
  });

  test("waits for its own window when that is longer than the refresh", async () => {
    const { refreshAll, end } = manualRefreshes();
    const { hook, notify, advance } = setUp({ refreshAll });
    notify();
    advance(500);
    notify();
    advance(200);
    await end();
    expect(hook.refreshCount).toBe(1);
    advance(300);
    expect(hook.refreshCount).toBe(2);
  });

  test("that the refresh itself causes gives one more", async () => {
    const setup: ReturnType<typeof setUp> = setUp({
      refreshAll: () => {
        if (setup.hook.refreshCount === 1) setup.notify();
      },
    });
    setup.notify();
    setup.advance(500);
    setup.advance(500);
    await turn();
    expect(setup.hook.refreshCount).toBe(2);
    setup.advance(60_000);
    expect(setup.hook.refreshCount).toBe(2);
  });

  test("is answered by a refresh that begins after it, and no two overlap, whatever the schedule", async () => {
    const step = fc.oneof(
      fc.constant("notify" as const),
      fc.constant("end" as const),
      fc.constant("fail" as const),
      fc.integer({ min: 0, max: 2_000 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { refreshAll, end, overlaps, running } = manualRefreshes();
        let unanswered = false;
        const { hook, notify, advance } = setUp({
          refreshAll: () => {
            unanswered = false;
            return refreshAll();
          },
        });
        let notified = 0;
        for (const each of steps) {
          if (each === "notify") {
            notify();
            notified += 1;
            unanswered = true;
          } else if (each === "end" || each === "fail") await end(each === "end" ? "well" : "badly");
          else advance(each);
        }
        advance(15_000);
        while (running() > 0) await end();
        expect(unanswered).toBe(false);
        expect(overlaps()).toBe(0);
        expect(hook.refreshCount).toBeLessThanOrEqual(notified);
      }),
      { numRuns: 200 },
    );
  });
});

describe("refreshCount", () => {
  test("counts refreshes that were begun", async () => {
    const { refreshAll, end } = manualRefreshes();
    const { hook, notify, advance } = setUp({ refreshAll });
    expect(hook.refreshCount).toBe(0);
    notify();
    advance(500);
    expect(hook.refreshCount).toBe(1);
    await end("badly");
    expect(hook.refreshCount).toBe(1);
  });

  test("can be read and not written", () => {
    const { hook } = setUp();
    expectTypeOf(hook.refreshCount).toEqualTypeOf<number>();
    expect(() => Object.assign(hook, { refreshCount: 7 })).toThrow(TypeError);
    expect(hook.refreshCount).toBe(0);
  });
});

describe("a refresh that fails", () => {
  test.each([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no"))],
  ])("and %s is logged, counted, and the hook lives on", async (_, refreshAll) => {
    const { hook, notify, advance, logged } = setUp({ refreshAll });
    notify();
    advance(500);
    await turn();
    notify();
    advance(500);
    await turn();
    expect(hook.refreshCount).toBe(2);
    const failed = {
      level: "error",
      message: "skills not refreshed",
      fields: { server: "my-server", error: new Error("no") },
    };
    expect(logged).toEqual([failed, failed]);
  });
});

describe("what a refresh found", () => {
  test("is logged in one line, when it has one", async () => {
    const toSummary = () => "refreshed: 1, failed: 0, skipped: 0";
    const { notify, advance, logged } = setUp({ refreshAll: async () => ({ toSummary }) });
    notify();
    advance(500);
    await turn();
    expect(logged).toEqual([
      { level: "info", message: "skills refreshed", fields: { server: "my-server", summary: toSummary() } },
    ]);
  });

  test("need not be anything", async () => {
    const { notify, advance, logged } = setUp();
    notify();
    advance(500);
    await turn();
    expect(logged).toMatchObject([{ level: "info", message: "skills refreshed" }]);
  });
});

describe("cancel", () => {
  test("drops what is pending", () => {
    const { hook, notify, advance, pending } = setUp();
    notify();
    hook.cancel();
    expect(pending()).toEqual([]);
    advance(60_000);
    expect(hook.refreshCount).toBe(0);
  });

  test("may be called when nothing is pending, and many times", () => {
    const { hook, notify, advance } = setUp();
    hook.cancel();
    notify();
    hook.cancel();
    hook.cancel();
    advance(60_000);
    expect(hook.refreshCount).toBe(0);
  });

  test("leaves the listener: the next notification has a window of its own", () => {
    const { hook, notify, advance } = setUp();
    notify();
    advance(400);
    hook.cancel();
    notify();
    advance(499);
    expect(hook.refreshCount).toBe(0);
    advance(1);
    expect(hook.refreshCount).toBe(1);
  });

  test("forgets since when something was pending", () => {
    const { hook, notify, advance } = setUp({ longestWaitSeconds: 1 });
    notify();
    advance(400);
    hook.cancel();
    advance(10_000);
    notify();
    advance(499);
    expect(hook.refreshCount).toBe(0);
  });

  test("lets a running refresh run, and drops the one that was to follow it", async () => {
    const { refreshAll, end } = manualRefreshes();
    const { hook, notify, advance } = setUp({ refreshAll });
    notify();
    advance(500);
    notify();
    advance(500);
    hook.cancel();
    await end();
    advance(60_000);
    expect(hook.refreshCount).toBe(1);
    notify();
    advance(500);
    expect(hook.refreshCount).toBe(2);
  });
});

test("two hooks on one adapter do not know of each other", () => {
  const { hook, adapter, notify, advance, now } = setUp();
  const { timer, advance: advanceOther } = createManualTimer();
  const failing = () => {
    throw new Error("no");
  };
  const other = new MCPRefreshHook(adapter, { refreshAll: failing }, 0.1, { timer, clock: now, log: () => undefined });
  notify();
  other.cancel();
  advance(500);
  advanceOther(500);
  expect([hook.refreshCount, other.refreshCount]).toEqual([1, 0]);
});

describe.each(["2026-07-28", "2025-11-25"] as const)("a skill registry behind a server that speaks %s", (protocol) => {
  const both = [aTool("search"), aTool("comment")];

  /** A server, an adapter that listens to it, and the skills that name its tools; time passes by hand. */
  async function connect() {
    const skills = catalogOf(instructions("acme/triage", { tools: ["s1/search", "s1/comment"] })).skills.list();
    const server = await serveMcp({ tools: both, protocol });
    const { timer, now, advance } = createManualTimer();
    const summaries: unknown[] = [];
    const log: Log = (_, message, fields) => {
      if (message === "skills refreshed") summaries.push(fields?.summary);
    };
    const config = overHttp(server.url);
    const options = { clock: now, timer, random: () => 0, log, readSecret: secretsOf({}) };
    const adapter = new MCPToolAdapter({ config, ...options });
    onTestFinished(() => adapter.close());
    let heard = 0;
    adapter.addNotificationListener(() => {
      heard += 1;
    });
    const offered = offeredBy(config);
    const registry = new SkillRegistry({ skills, lookup: offered.lookup, log });
    const hears = (count: number) => expect.poll(() => heard).toBe(count);
    return { server, adapter, registry, offered, summaries, advance, hears, hookOptions: { timer, clock: now, log } };
  }

  test("is refreshed once for a storm of what the server says", async () => {
    const { server, adapter, registry, offered, summaries, advance, hears, hookOptions } = await connect();
    await offered.fetch();
    const hook = new MCPRefreshHook(adapter, registry, 0.5, hookOptions);
    adapter.start();
    await hears(1);
    for (let count = 2; count <= 5; count += 1) {
      server.notify();
      await hears(count);
      advance(100);
    }
    expect(hook.refreshCount).toBe(0);
    advance(400);
    await expect.poll(() => summaries).toEqual(["refreshed: 1, failed: 0, skipped: 0"]);
    advance(10_000);
    expect(hook.refreshCount).toBe(1);
  });

  test("knows after a refresh what the server offers then", async () => {
    const { server, adapter, registry, offered, summaries, advance, hears, hookOptions } = await connect();
    const results: SkillRefreshResult[] = [];
    const refreshAll = async () => {
      await offered.fetch();
      const result = registry.refreshAll();
      results.push(result);
      return result;
    };
    const hook = new MCPRefreshHook(adapter, { refreshAll }, 0.5, hookOptions);
    adapter.start();
    await hears(1);
    advance(500);
    await expect.poll(() => summaries).toEqual(["refreshed: 1, failed: 0, skipped: 0"]);
    server.setTools([aTool("search")]);
    server.notify();
    await hears(2);
    advance(500);
    await expect.poll(() => summaries.at(-1)).toBe("refreshed: 0, failed: 1, skipped: 0");
    expect(results.at(-1)?.failed.get("acme/triage")).toBe("missing tools: acme/triage: s1/comment");
    server.setTools(both);
    server.notify();
    await hears(3);
    advance(500);
    await expect.poll(() => summaries.at(-1)).toBe("refreshed: 1, failed: 0, skipped: 0");
    expect(hook.refreshCount).toBe(3);
  });
});

/** What a server offered when its list was fetched last; nothing can be told before. */
function offeredBy(config: MCPServerConfig) {
  let server: LendingServer = { name: config.name, record: undefined, tools: new Map(), readable: false };
  return {
    fetch: async () => {
      const listed = await sourceOf(config).list(config.name, ample());
      if (!listed.ok) throw listed.fault;
      const lent = listed.value.tools.map((definition) => ({ ref: mcpRef(config.name, definition), definition }));
      const tools = new Map(lent.map((tool) => [tool.definition.name, tool]));
      server = { name: config.name, record: undefined, tools, readable: true };
    },
    lookup: (ref: string) => createLookup(new Map(), new Map([[config.name, server]]))(ref),
  };
}
