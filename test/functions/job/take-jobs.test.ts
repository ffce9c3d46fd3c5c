import { describe, expect, test } from "vitest";
import { Fault, succeed } from "../../../functions/contract/fault.ts";
import type { HandlerRunner } from "../../../functions/contract/ports.ts";
import { reportJob } from "../../../functions/job/report-job.ts";
import "../../kit/to-fail.ts";
import { asyncWorld, lentWorld, OWNER_ID, queued } from "./async-world.ts";
import { dyingStore } from "./dying-store.ts";
import { LEASE_MS, pdfCall, planCall } from "./job-context.ts";

const JOB = { calls: [planCall(), pdfCall()] };

/** A runner whose calls wait for the test; `begun` counts them. */
function heldRunner() {
  const waiting: (() => void)[] = [];
  let begun = 0;
  const runner: HandlerRunner = {
    interrupts: true,
    run: async () => {
      begun += 1;
      await new Promise<void>((done) => waiting.push(done));
      return succeed({ done: true });
    },
  };
  return { runner, begun: () => begun, letGo: () => waiting.shift()?.() };
}

describe("a job that is taken", () => {
  test("ends as it would have ended with its caller waiting, and what it was asked to do is removed", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    world.clock.advance(3_600_000);
    expect(await world.take(body)).toBeUndefined();
    const kept = await world.recordOf(record.job_id);
    expect(kept).toMatchObject({ status: "succeeded", created_at: record.created_at, attempts: 1 });
    expect(kept).not.toHaveProperty("lease_until");
    expect(kept?.artifacts).toHaveLength(2);
    expect((await world.keys()).filter((key) => key.startsWith("requests/"))).toEqual([]);
    const report = await reportJob(OWNER_ID, record.job_id, world.reporting);
    expect(report.ok && report.value.artifacts[0]?.url).toContain("http");
  });

  test("has its time from when it begins, however long it waited", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, { ...JOB, limits: { job_timeout_ms: 1_000 } });
    world.clock.advance(24 * 3600_000);
    expect(await world.take(body)).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toMatchObject({ status: "succeeded", usage: { duration_ms: 0 } });
  });

  test("whose every input is refused is failed, with each call's own reason", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, { calls: [pdfCall("x", { filename: 7 })] });
    expect(await world.take(body)).toBeUndefined();
    const kept = await world.recordOf(record.job_id);
    expect(kept).toMatchObject({ status: "failed", results: [{ ok: false, error: { code: "TOOL_INPUT_INVALID" } }] });
  });

  test("whose tool is no longer approved when it begins is failed with that reason", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    const { catalog } = asyncWorld({}).context;
    const narrower = { ...catalog, policy: { ...catalog.policy, approved: new Set<never>() } };
    expect(await world.take(body, { catalog: narrower })).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toMatchObject({
      status: "failed",
      error: { code: "TOOL_NOT_APPROVED" },
    });
  });

  test("twice by the same message runs once", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    await world.take(body);
    const kept = await world.recordOf(record.job_id);
    world.clock.advance(1_000);
    expect(await world.take(body)).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toEqual(kept);
  });

  test("while another worker has it comes again later, and runs once", async () => {
    const { runner, begun, letGo } = heldRunner();
    const world = asyncWorld({ runner });
    const { record, body } = await queued(world, { calls: [planCall()] });
    const first = world.take(body);
    await expect.poll(begun).toBe(1);
    expect(await world.take(body)).toFail("JOB_HELD");
    letGo();
    expect(await first).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toMatchObject({ status: "succeeded", attempts: 1 });
    expect(await world.take(body)).toBeUndefined();
    expect(begun()).toBe(1);
  });
});

describe("a worker that is killed", () => {
  test.each([false, true])("at any step, done (%s) or not, leaves a job that another one ends", async (done) => {
    for (let at = 1; ; at += 1) {
      const world = asyncWorld();
      const { record, body } = await queued(world, JOB);
      const dying = dyingStore(world.store, at, { done });
      const failed = await world.take(body, { store: dying.store });
      // Dead is dead: what a killed worker would have said after it is not heard.
      const ended = !dying.isDead() && failed === undefined;
      world.clock.advance(LEASE_MS + 1);
      expect([at, await world.take(body)]).toEqual([at, undefined]);
      const kept = await world.recordOf(record.job_id);
      expect([at, kept?.status, kept?.error]).toEqual([at, "succeeded", undefined]);
      const files = (await world.keys()).filter((key) => key.startsWith("artifacts/"));
      expect([at, files]).toEqual([at, kept?.artifacts.map(({ key }) => key)]);
      if (ended) {
        expect(at).toBeGreaterThan(6);
        return;
      }
    }
  });

  test("keeps others away until its lease is over and not longer", async () => {
    const world = asyncWorld();
    const { body } = await queued(world, JOB);
    await world.take(body, { store: dyingStore(world.store, 3, { done: false }).store });
    world.clock.advance(LEASE_MS - 1);
    expect(await world.take(body)).toFail("JOB_HELD");
    world.clock.advance(1);
    expect(await world.take(body)).toBeUndefined();
  });

  test("and that only met a store that was down lets the next one have it at once", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    const down = {
      ...world.store,
      get: async (key: string, limits: { maxBytes: number }) =>
        key.startsWith("requests/") ? Promise.reject(new Error("down")) : world.store.get(key, limits),
    };
    expect(await world.take(body, { store: down })).toFail("DEFECT");
    expect(await world.take(body)).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toMatchObject({ status: "succeeded", attempts: 2 });
  });

  test("while it called a server's tool leaves a failed job: nobody calls that tool a second time", async () => {
    const { job, calls, changes } = await lentWorld();
    const world = asyncWorld(changes);
    const { record, body } = await queued(world, job);
    // Dies when it wants to keep what came of the call: two steps to take the job, one to read it, one to note the
    // call.
    await world.take(body, { store: dyingStore(world.store, 5, { done: false }).store });
    expect(calls()).toBe(1);
    world.clock.advance(LEASE_MS + 1);
    expect(await world.take(body)).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toMatchObject({ status: "failed", error: { code: "JOB_INTERRUPTED" } });
    expect(calls()).toBe(1);
  });
});

describe("a job that calls a server's tool", () => {
  test.each([1, 2, 3, 4])(
    "and whose worker was killed before the first call (step %i) is run by another one",
    async (at) => {
      const { job, calls, changes } = await lentWorld();
      const world = asyncWorld(changes);
      const { record, body } = await queued(world, job);
      await world.take(body, { store: dyingStore(world.store, at, { done: false }).store });
      expect(calls()).toBe(0);
      world.clock.advance(LEASE_MS + 1);
      expect(await world.take(body)).toBeUndefined();
      expect(await world.recordOf(record.job_id)).toMatchObject({ status: "succeeded" });
      expect(calls()).toBe(1);
    },
  );

  test("is not called by a worker whose job is another's by then", async () => {
    const { job, calls, changes } = await lentWorld();
    const world = asyncWorld(changes);
    const { record, body } = await queued(world, job);
    const stealing = {
      ...world.store,
      get: async (key: string, limits: { maxBytes: number }) => {
        if (key.startsWith("requests/")) await world.cancel(record.job_id);
        return world.store.get(key, limits);
      },
    };
    await world.take(body, { store: stealing });
    expect(calls()).toBe(0);
  });
});

describe("a second message of a job", () => {
  test("is done with while the first one's worker is at it, so that it never becomes a dead letter", async () => {
    const { runner, begun, letGo } = heldRunner();
    const world = asyncWorld({ runner });
    const { record, body } = await queued(world, { calls: [planCall()] });
    const first = world.take(body);
    await expect.poll(begun).toBe(1);
    expect(await world.take(body, {}, { id: "m2" })).toBeUndefined();
    letGo();
    expect(await first).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toMatchObject({ status: "succeeded" });
  });

  test("takes over once the first one's lease is over", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    await world.take(body, { store: dyingStore(world.store, 3, { done: false }).store });
    world.clock.advance(LEASE_MS + 1);
    expect(await world.take(body, {}, { id: "m2" })).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toMatchObject({ status: "succeeded", attempts: 2 });
  });
});

describe("a message that is handed out again", () => {
  test.each([
    [true, "succeeded"],
    [false, "running"],
  ])(
    "means that its worker is dead where the queue says so (%s), else its lease is waited for",
    async (isDeath, status) => {
      const world = asyncWorld();
      const { record, body } = await queued(world, JOB);
      await world.take(body, { store: dyingStore(world.store, 3, { done: false }).store });
      await world.take(body, { redeliveryIsDeath: isDeath }, { receiveCount: 2 });
      expect(await world.recordOf(record.job_id)).toMatchObject({ status });
    },
  );

  test("after the job has ended removes the request that a killed worker left", async () => {
    const world = asyncWorld();
    const { body } = await queued(world, JOB);
    const dying = { ...world.store, delete: async () => Promise.reject(new Error("killed")) };
    expect(await world.take(body, { store: dying })).toFail("DEFECT");
    expect((await world.keys()).some((key) => key.startsWith("requests/"))).toBe(true);
    expect(await world.take(body, {}, { receiveCount: 2 })).toBeUndefined();
    expect((await world.keys()).some((key) => key.startsWith("requests/"))).toBe(false);
  });
});

describe("a worker whose job was taken over", () => {
  /** A worker that is held up in storing its file, until the test lets it go on. */
  async function heldUp() {
    let goOn = () => {};
    const gate = new Promise<void>((done) => {
      goOn = done;
    });
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    let reached = false;
    const slow = {
      ...world.store,
      put: async (request: Parameters<typeof world.store.put>[0]) => {
        if (request.key.startsWith("artifacts/")) {
          reached = true;
          await gate;
        }
        return world.store.put(request);
      },
    };
    const first = world.take(body, { store: slow });
    await expect.poll(() => reached).toBe(true);
    world.clock.advance(LEASE_MS + 1);
    return { world, record, body, first, goOn: () => goOn() };
  }

  test("leaves record and files of the other one as they are", async () => {
    const { world, record, body, first, goOn } = await heldUp();
    expect(await world.take(body, {}, { id: "m2" })).toBeUndefined();
    const kept = await world.recordOf(record.job_id);
    goOn();
    expect(await first).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toEqual(kept);
    const files = (await world.keys()).filter((key) => key.startsWith("artifacts/"));
    expect(files).toEqual(kept?.artifacts.map(({ key }) => key));
    expect(files).toHaveLength(2);
  });

  test("and that then fails does not end the other one's lease", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    const failing = {
      ...world.store,
      get: async (key: string, limits: { maxBytes: number }) => {
        if (!key.startsWith("requests/")) return world.store.get(key, limits);
        world.clock.advance(LEASE_MS + 1);
        await world.take(body, { store: dyingStore(world.store, 3, { done: false }).store }, { id: "m2" });
        throw new Error("the store is down");
      },
    };
    expect(await world.take(body, { store: failing })).toFail("DEFECT");
    expect(await world.recordOf(record.job_id)).toMatchObject({ attempts: 2, lease: { message_id: "m2" } });
  });
});

test("a job that ended is told in one line, and each of its calls in one", async () => {
  const world = asyncWorld();
  const { record, body } = await queued(world, JOB);
  await world.take(body);
  const told = world.logged.filter(({ fields }) => fields?.job_id === record.job_id && fields.message_id === "m1");
  const ids = { job_id: record.job_id, message_id: "m1" };
  expect(told.map(({ fields }) => fields)).toMatchObject([
    { ...ids, call_id: "c1" },
    { ...ids, call_id: "c2" },
    { ...ids, mode: "async", status: "succeeded", calls: 2, artifacts: 2 },
  ]);
});

describe("a job that is cancelled while it runs", () => {
  test("begins no further call, and what was made is kept nowhere", async () => {
    const { runner, begun, letGo } = heldRunner();
    const world = asyncWorld({ runner });
    const { record, body } = await queued(world, { calls: [planCall(), planCall(), planCall()] });
    const working = world.take(body);
    await expect.poll(begun).toBe(1);
    const cancelled = await world.cancel(record.job_id);
    expect(cancelled.ok && cancelled.value).toMatchObject({ status: "failed", error: { code: "JOB_CANCELLED" } });
    letGo();
    expect(await working).toBeUndefined();
    expect(begun()).toBe(1);
    // What was done is to be found, though no record tells of it.
    const calls = world.logged.filter(({ fields }) => fields?.call_id !== undefined);
    expect(calls.map(({ fields }) => fields?.call_id)).toEqual(["c1"]);
    expect(await world.recordOf(record.job_id)).toMatchObject({ status: "failed", error: { code: "JOB_CANCELLED" } });
  });

  test("in its last call stays cancelled, and its files are removed", async () => {
    let cancel = async () => {};
    const world = asyncWorld({}, (store) => ({
      ...store,
      put: async (request) => {
        const put = await store.put(request);
        if (request.key.startsWith("artifacts/")) await cancel();
        return put;
      },
    }));
    const { record, body } = await queued(world, JOB);
    cancel = async () => {
      cancel = async () => {};
      await world.cancel(record.job_id);
    };
    expect(await world.take(body, { store: world.context.store })).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toMatchObject({ status: "failed", error: { code: "JOB_CANCELLED" } });
    expect((await world.keys()).filter((key) => !key.startsWith("jobs/"))).toEqual([]);
  });
});

describe("a message", () => {
  test.each([
    "",
    "{",
    "[]",
    '{"job_id":"x"}',
    '{"owner":"../x","job_id":"y"}',
    `{"owner":"${OWNER_ID}","job_id":"y","more":1}`,
  ])("that names no job fails, and is not believed: %s", async (body) => {
    expect(await asyncWorld().take(body)).toBeInstanceOf(Fault);
  });

  test("of a job that is not there is done with", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    await world.store.delete(`jobs/${OWNER_ID}/${record.job_id}.json`);
    expect(await world.take(body)).toBeUndefined();
  });

  test("of a job whose request is gone ends the job with a reason", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    await world.store.delete(`requests/${OWNER_ID}/${record.job_id}.json`);
    expect(await world.take(body)).toBeUndefined();
    expect(await world.recordOf(record.job_id)).toMatchObject({ status: "failed", error: { code: "DEFECT" } });
  });
});
