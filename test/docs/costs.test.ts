import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { takeNotifications } from "../../functions/refresh/take-notifications.ts";
import { takeRefreshes } from "../../functions/refresh/take-refreshes.ts";
import { createJsonLog } from "../../functions/wiring/json-log.ts";
import { listChanged, received, refreshWorld, START } from "../functions/refresh/refresh-world.ts";
import { type CountingStore, countingStore, type StoreCounts } from "../kit/counting-store.ts";
import { createTestService, httpEvent, jobEvent, jsonOf, type TestService } from "../kit/http-events.ts";

/** The page of costs against the requests that the code makes, and its dollars against its own prices. */

const page = readFileSync("docs/costs.md", "utf8");
const JOB = { calls: [{ tool: "create_pdf@1", arguments: { title: "Minutes", body: "We met." } }] };
/** Lambda writes START, END and REPORT for each. */
const BYTES_AN_INVOCATION = 300;

function rowsUnder(heading: string): readonly (readonly string[])[] {
  const section = page.split(`## ${heading}`)[1]?.split("\n## ")[0] ?? "";
  const lines = section.split("\n").filter((line) => /^\| .* \d/.test(line));
  return lines.map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

type Counted = {
  readonly store: StoreCounts;
  readonly sqs: number;
  readonly invocations: number;
  readonly log: number;
};

/** A warm service, what it was asked before not counted. */
async function warm() {
  let counting: CountingStore | undefined;
  const service = createTestService({
    wrapStore: (store) => {
      counting = countingStore(store);
      return counting.store;
    },
  });
  if (counting === undefined) throw new Error("the service has no store");
  const { take } = counting;
  const first = jsonOf(await service.send(jobEvent(JOB)));
  let logged = service.logged.length;
  const count = async (
    act: (service: TestService) => Promise<unknown>,
    more: Partial<Counted> = {},
  ): Promise<Counted> => {
    await act(service);
    const lines = service.logged.slice(logged);
    logged = service.logged.length;
    return { store: take(), sqs: 0, invocations: 1, log: byteCount(lines), ...more };
  };
  take();
  return { service, count, path: `/v1/jobs/${first.job_id}` };
}

function byteCount(lines: TestService["logged"]): number {
  let bytes = 0;
  const log = createJsonLog((line) => {
    bytes += line.length + 1;
  });
  for (const { level, message, fields } of lines) log(level === "error" ? "error" : "info", message, fields);
  return bytes;
}

const keyed = jobEvent(JOB, { headers: { "idempotency-key": "k1" } });

async function countNotification(): Promise<Counted> {
  const { count } = await warm();
  const door = await count((service) =>
    service.send(httpEvent({ method: "POST", path: "/v1/notifications", body: "{}" })),
  );
  const world = refreshWorld(["s1"]);
  const { store, take } = countingStore(world.store);
  const context = { ...world.context, store };
  // The second refresh: the first one finds nothing published, which no other one does.
  for (const at of [START, START + 60_000]) {
    take();
    world.logged.splice(0);
    await takeNotifications([received(listChanged("s1"), { sentAt: at })], context);
    world.clock.advance(61_000);
    const { body = "" } = world.sent.at(-1) ?? {};
    expect([...(await takeRefreshes([received(body, { sentAt: at, firstReceivedAt: at + 2_000 })], context))]).toEqual(
      [],
    );
  }
  // Each of two messages is sent, received and deleted.
  return { store: take(), sqs: 6, invocations: 3, log: door.log + byteCount(world.logged) };
}

describe("the requests", () => {
  const COUNTED: readonly (readonly [string, () => Promise<Counted>])[] = [
    ["synchronous job with one file", async () => (await warm()).count((service) => service.send(jobEvent(JOB)))],
    ["the same with `Idempotency-Key`", async () => (await warm()).count((service) => service.send(keyed))],
    [
      "its retry, after it has ended",
      async () => {
        const { service, count } = await warm();
        await count(() => service.send(keyed));
        return count(() => service.send(keyed));
      },
    ],
    [
      "asynchronous job with one file",
      async () =>
        (await warm()).count(
          async (service) => {
            await service.send(jobEvent(JOB, { headers: { prefer: "respond-async" } }));
            expect(service.queuedJobs).toHaveLength(1);
            await service.workOff();
          },
          { sqs: 3, invocations: 2 },
        ),
    ],
    [
      "report of a job",
      async () => {
        const { count, path } = await warm();
        return count((service) => service.send(httpEvent({ path })));
      },
    ],
    [
      "download through the API",
      async () => {
        const { count, path } = await warm();
        const counted = await count((service) => service.send(httpEvent({ path: `${path}/artifacts/a1` })));
        // And the caller's own, by the link.
        return { ...counted, store: { ...counted.store, get: counted.store.get + 1 } };
      },
    ],
    ["notification that leads to a refresh", countNotification],
  ];
  const rows = rowsUnder("Requests");

  test("of a row each are counted", () => {
    expect(rows.map(([name]) => name)).toEqual(COUNTED.map(([name]) => name));
  });

  test.each(COUNTED)("of a %s are those of the page", async (name, countIt) => {
    const { store, sqs, invocations, log } = await countIt();
    const [, http, puts, gets, deletes, messages, lambda, bytes] = rows.find(([row]) => row === name) ?? [];
    expect([http, puts, gets, deletes, messages, lambda].map(Number)).toEqual([
      1,
      store.put,
      store.get,
      store.delete,
      sqs,
      invocations,
    ]);
    expect(store.list).toBe(0);
    const counted = log + invocations * BYTES_AN_INVOCATION;
    expect(Number(bytes)).toBeGreaterThanOrEqual(counted * 0.9);
    expect(Number(bytes)).toBeLessThanOrEqual(counted * 1.3);
  });

  test("of a synchronous job with one file are at most three to S3 and none to anything else", async () => {
    const { store, sqs } = await (await warm()).count((service) => service.send(jobEvent(JOB)));
    expect(store.put + store.get + store.delete + store.list).toBeLessThanOrEqual(3);
    expect(sqs).toBe(0);
  });
});

describe("the dollars", () => {
  const PER_MILLION = { http: 1, put: 5, get: 0.4, sqs: 0.4, fifo: 0.1, lambda: 0.2, gigabyteSeconds: 13.3334 };
  const PER_GIGABYTE_LOGGED = 0.5;
  const requests = rowsUnder("Requests");

  test.each(rowsUnder("A million of them").map((row, index) => [row[0] ?? "", row, requests[index] ?? []] as const))(
    "of a million %s are worked out from the requests",
    (name, [, times = "", ...dollars], [, ...cells]) => {
      const [http = 0, puts = 0, gets = 0, , sqs = 0, lambda = 0, bytes = 0] = cells.map(Number);
      // Three of a notification's six requests are to the ordered queue.
      const ordered = name.startsWith("notifications") ? 3 : 0;
      const p = PER_MILLION;
      const asked = http * p.http + puts * p.put + gets * p.get + sqs * p.sqs + ordered * p.fifo + lambda * p.lambda;
      const runs = [...times.matchAll(/(\d+) × (\d+)/g)];
      expect(runs).toHaveLength(lambda);
      const seconds = runs.reduce((sum, [, ms, mib]) => sum + (Number(ms) / 1000) * (Number(mib) / 1024), 0);
      const ran = seconds * p.gigabyteSeconds;
      const logged = (bytes * 1_000_000 * PER_GIGABYTE_LOGGED) / 1e9;
      const wanted = [asked, ran, logged, asked + ran + logged].map((amount) => amount.toFixed(2));
      expect(dollars).toEqual(wanted);
    },
  );
});
