import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { OperatorSettings } from "../../functions/contract/settings.ts";
import { parseSettings } from "../../functions/contract/settings.ts";
import { startJobPath } from "../../local/job-path.ts";
import { openLocalQueues } from "../../local/queues.ts";
import { realTimer } from "../../local/timer.ts";
import { OWNER_ID } from "../functions/job/async-world.ts";
import type { Logged } from "../kit/http-events.ts";
import { temporaryDirectory } from "../kit/local-service.ts";
import { createMemoryObjectStore } from "../kit/memory-object-store.ts";

/** Dead letters of the jobs queue on one machine; jobs that end, jobs-live.test.ts shows. */

const PATIENCE = { timeout: 20_000, interval: 10 };

function settings(): OperatorSettings {
  const parsed = parseSettings({});
  if (!parsed.ok) throw parsed.fault;
  return parsed.value;
}

/** A queue whose every message dies at its first receive, and a clock that the test can put forward. */
function world() {
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const logged: Logged[] = [];
  const log = (level: string, message: string, fields = {}) => void logged.push({ level, message, fields });
  const queues = openLocalQueues({ directory: join(temporaryDirectory(), "data"), settings: settings(), clock, log });
  const store = createMemoryObjectStore({ clock });
  const start = (wrapped = store) =>
    startJobPath({
      settings: settings(),
      store: wrapped,
      jobs: queues.jobs,
      work: async (messages) => new Map(messages.map(({ id }) => [id, new Error("never") as never])),
      clock,
      timer: realTimer,
      log,
    });
  /** Dead letters of this many jobs that are not there. */
  const kill = async (count: number) => {
    for (let index = 0; index < count; index += 1) {
      const body = JSON.stringify({
        owner: OWNER_ID,
        job_id: `7ybqaby9kz9yvhyj833nfcx8${String(index).padStart(2, "0")}`,
      });
      await queues.jobs.send({ body });
    }
    for (let receives = 0; receives < 6; receives += 1) {
      for (let left = count; left > 0; left -= 10) await queues.jobs.receive({ max: 10 });
      ahead += 6_000;
    }
    expect(queues.jobs.deadLetters()).toHaveLength(count);
  };
  return {
    start,
    kill,
    store,
    logged,
    queues,
    forward: (ms: number) => {
      ahead += ms;
    },
  };
}

describe("a dead letter", () => {
  test("whose job cannot be ended is tried again later, holds up nobody, and does not keep the process from others", async () => {
    const { start, kill, store, forward, queues } = world();
    await kill(25);
    let asked = 0;
    const path = start({
      ...store,
      get: async () => {
        asked += 1;
        throw new Error("the store is down");
      },
    });
    await expect.poll(() => asked, PATIENCE).toBe(25);
    await new Promise((done) => setImmediate(done));
    expect(asked).toBe(25);
    forward(31_000);
    await expect.poll(() => asked, PATIENCE).toBe(50);
    await path.close();
    queues.close();
  });

  test("that is done with is looked at once", async () => {
    const { start, kill, store, forward, queues } = world();
    await kill(3);
    let asked = 0;
    const path = start({
      ...store,
      get: async () => {
        asked += 1;
        return undefined;
      },
    });
    await expect.poll(() => asked, PATIENCE).toBe(3);
    forward(31_000);
    const letters = queues.jobs.deadLetters().length;
    await expect.poll(() => queues.jobs.deadLetters().length, PATIENCE).toBe(letters);
    expect(asked).toBe(3);
    await path.close();
    queues.close();
  });
});
