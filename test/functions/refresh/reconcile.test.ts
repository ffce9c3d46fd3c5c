import { describe, expect, test } from "vitest";
import { LIST_CHANGED } from "../../../functions/contract/notification.ts";
import type { QueueMessage } from "../../../functions/contract/ports.ts";
import { reconcile } from "../../../functions/refresh/reconcile.ts";
import { refreshServers } from "../../../functions/refresh/refresh-servers.ts";
import { refreshWorld } from "./refresh-world.ts";

const INTERVAL_MS = 900_000;
const MAX_AGE_MS = 24 * 3600_000;

function world(servers: readonly string[]) {
  const made = refreshWorld(servers);
  const sent: QueueMessage[] = [];
  const context = {
    servers: made.context.installed.servers,
    store: made.store,
    notifications: { send: async (message: QueueMessage) => void sent.push(message) },
    clock: made.clock.now,
    log: () => undefined,
    due: { intervalMs: INTERVAL_MS, maxListAgeMs: MAX_AGE_MS },
  };
  const refresh = () => refreshServers({ servers, cause: "schedule", dryRun: false }, made.context);
  return { ...made, queued: sent, refresh, due: () => reconcile(context) };
}

/** Ms after now at which the server is due, to the second. */
async function dueAfter({ clock, due }: ReturnType<typeof world>, most: number): Promise<number> {
  for (let waited = 0; waited <= most; waited += 1_000) {
    if ((await due()).length > 0) return waited;
    clock.advance(1_000);
  }
  return Number.POSITIVE_INFINITY;
}

describe("a server", () => {
  test("that nothing is known of is due at once, by a notification like any other", async () => {
    const { due, queued } = world(["s1"]);
    expect(await due()).toEqual(["s1"]);
    expect(queued).toEqual([{ body: JSON.stringify({ server: "s1", method: LIST_CHANGED, source: "schedule" }) }]);
  });

  test("that says how long its list is good is due after that, within a tenth more", async () => {
    const made = world(["s1"]);
    made.toolSource.server("s1").ttlMs = 300_000;
    await made.refresh();
    made.clock.advance(120_000);
    expect(await made.due()).toEqual([]);
    const waited = 120_000 + (await dueAfter(made, 300_000));
    expect(waited).toBeGreaterThanOrEqual(300_000);
    expect(waited).toBeLessThanOrEqual(331_000);
  });

  test("that does not say is due after the operator's interval", async () => {
    const made = world(["s1"]);
    await made.refresh();
    const waited = await dueAfter(made, INTERVAL_MS * 2);
    expect(waited).toBeGreaterThanOrEqual(INTERVAL_MS);
    expect(waited).toBeLessThanOrEqual(INTERVAL_MS * 1.1 + 1_000);
  });

  test("that says that its list is good for a month is due in time for the list not to grow too old", async () => {
    const made = world(["s1"]);
    made.toolSource.server("s1").ttlMs = 30 * 24 * 3600_000;
    await made.refresh();
    made.clock.advance(MAX_AGE_MS - 180_000);
    expect(await made.due()).toEqual(["s1"]);
  });

  test("that was last asked in the future, by a clock that has gone back, is due at once", async () => {
    const made = world(["s1"]);
    await made.refresh();
    made.clock.advance(-3600_000);
    expect(await made.due()).toEqual(["s1"]);
  });

  test("that says 0 is not asked without end", async () => {
    const made = world(["s1"]);
    made.toolSource.server("s1").ttlMs = 0;
    await made.refresh();
    expect(await dueAfter(made, 100_000)).toBeGreaterThanOrEqual(60_000);
  });

  test("that fails is tried again ever later, an hour at most", async () => {
    const made = world(["s1"]);
    made.toolSource.server("s1").failing = "down";
    const waits: number[] = [];
    for (let failure = 0; failure < 10; failure += 1) {
      await made.refresh();
      waits.push(await dueAfter(made, 5_000_000));
    }
    for (const [index, wait] of waits.entries()) {
      const least = Math.min(30_000 * 2 ** index, 3600_000);
      expect(wait).toBeGreaterThanOrEqual(least);
      expect(wait).toBeLessThanOrEqual(least * 1.1 + 1_000);
    }
  });
});

test("servers that were fetched together are not due together", async () => {
  const made = world(["s1", "s2", "s3", "s4"]);
  await made.refresh();
  const due = new Set<number>();
  for (let waited = 0; waited < INTERVAL_MS * 1.2 && due.size < 2; waited += 1_000) {
    const names = await made.due();
    if (names.length > 0) due.add(names.length);
    made.clock.advance(1_000);
  }
  expect([...due][0]).toBeLessThan(4);
});
