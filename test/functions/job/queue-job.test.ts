import { describe, expect, test } from "vitest";
import type { JobRequest } from "../../../functions/contract/job.ts";
import { JOB_MESSAGE_DAYS } from "../../../functions/contract/job-times.ts";
import { listJobs, reportJob } from "../../../functions/job/report-job.ts";
import "../../kit/to-fail.ts";
import { ASYNC_SECONDS, asyncWorld, OWNER_ID, queued } from "./async-world.ts";
import { dyingStore } from "./dying-store.ts";
import { LEASE_MS, pdfCall, planCall } from "./job-context.ts";

const JOB = { calls: [planCall(), pdfCall()] };
const KEY = "key-1";
const DAY = 24 * 3600_000;

describe("a job that is queued", () => {
  test("is stored with what it is to do, told to the queue by its id alone, and reported as queued", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    expect(JSON.parse(body)).toEqual({ owner: OWNER_ID, job_id: record.job_id });
    expect(await world.keys()).toEqual([
      `jobs/${OWNER_ID}/${record.job_id}.json`,
      `requests/${OWNER_ID}/${record.job_id}.json`,
    ]);
    const report = await reportJob(OWNER_ID, record.job_id, world.reporting);
    expect(report.ok && report.value).toMatchObject({ status: "queued", results: [], artifacts: [] });
    expect(report.ok && report.value).not.toHaveProperty("finished_at");
  });

  test("may take as long as an asynchronous job may, and no longer", async () => {
    const world = asyncWorld();
    const limits = { job_timeout_ms: ASYNC_SECONDS * 1000 };
    await queued(world, { ...JOB, limits });
    expect(await world.submit({ ...JOB, limits: { job_timeout_ms: limits.job_timeout_ms + 1 } })).toFail(
      "REQUEST_INVALID",
    );
  });

  test.each<[string, Partial<JobRequest> | unknown, "TOOL_UNKNOWN" | "TOOL_NOT_ALLOWED" | "REQUEST_INVALID"]>([
    ["names an unknown tool", { calls: [{ tool: "no_such@1" }] }, "TOOL_UNKNOWN"],
    ["does not allow what it calls", { allowed_tools: ["create_pdf@1"], calls: [planCall()] }, "TOOL_NOT_ALLOWED"],
    ["calls too much", { calls: Array.from({ length: 17 }, () => planCall()) }, "REQUEST_INVALID"],
  ])("that %s is refused at the door and leaves nothing", async (_, request, code) => {
    const world = asyncWorld();
    expect(await world.submit(request)).toFail(code);
    expect(world.sent).toEqual([]);
    expect(await world.keys()).toEqual([]);
  });
});

describe("a key", () => {
  test("that is used again gets the job as it is now, queued once", async () => {
    const world = asyncWorld();
    const first = await world.submit(JOB, KEY);
    expect(await world.submit(JOB, KEY)).toEqual(first);
    expect(await world.take(world.sent[0]?.body ?? "")).toBeUndefined();
    const later = await world.submit(JOB, KEY);
    expect(later.ok && later.value.status).toBe("succeeded");
    expect((await world.keys()).filter((key) => key.startsWith("jobs/"))).toHaveLength(1);
  });

  test("of a job that is queued is in progress for who wants to wait for the answer", async () => {
    const world = asyncWorld();
    await world.submit(JOB, KEY);
    const refused = await world.run(JOB, OWNER_ID, KEY);
    expect(refused).toFail("IDEMPOTENCY_IN_PROGRESS");
    expect(await world.take(world.sent[0]?.body ?? "")).toBeUndefined();
    const ran = await world.run(JOB, OWNER_ID, KEY);
    expect(ran.ok && ran.value.status).toBe("succeeded");
  });

  test("of a refused job is as good as new", async () => {
    const world = asyncWorld();
    expect(await world.submit({ calls: [{ tool: "no_such@1" }] }, KEY)).toFail("TOOL_UNKNOWN");
    expect((await world.submit(JOB, KEY)).ok).toBe(true);
  });

  test.each([false, true])(
    "brings the job into the queue whenever whoever had it first was killed (done: %s)",
    async (done) => {
      for (let at = 1; ; at += 1) {
        const world = asyncWorld();
        const dying = dyingStore(world.store, at, { done });
        const killed = { ...world.queueContext, store: dying.store };
        const ended = await world.submit(JOB, KEY, killed).then(
          () => true,
          () => false,
        );
        if (!ended) world.sent.splice(0);
        world.clock.advance(LEASE_MS + 1);
        const again = await world.submit(JOB, KEY);
        expect([at, again.ok && again.value.status]).toEqual([at, "queued"]);
        for (const { body } of world.sent) expect([at, await world.take(body)]).toEqual([at, undefined]);
        const settled = await world.submit(JOB, KEY);
        expect([at, settled.ok && settled.value.status]).toEqual([at, "succeeded"]);
        expect([at, (await world.keys()).filter((key) => /^(jobs|requests)\//.test(key)).length]).toEqual([at, 1]);
        if (ended) {
          expect(at).toBeGreaterThan(3);
          return;
        }
      }
    },
  );

  test("brings the job into the queue when its message could not be sent", async () => {
    const world = asyncWorld();
    const down = { ...world.queueContext, jobs: { send: async () => Promise.reject(new Error("the queue is down")) } };
    await expect(world.submit(JOB, KEY, down)).rejects.toThrow("the queue is down");
    expect((await world.submit(JOB, KEY)).ok).toBe(true);
    expect(world.sent).toHaveLength(1);
  });
});

test("a job whose message was never sent is failed once no message could be there any more", async () => {
  const world = asyncWorld();
  const down = { ...world.queueContext, jobs: { send: async () => Promise.reject(new Error("killed")) } };
  await expect(world.submit(JOB, undefined, down)).rejects.toThrow("killed");
  const listed = async () => (await listJobs(OWNER_ID, {}, world.reporting)).jobs[0];
  world.clock.advance(JOB_MESSAGE_DAYS * DAY);
  expect(await listed()).toMatchObject({ status: "queued" });
  world.clock.advance(1);
  expect(await listed()).toMatchObject({ status: "failed" });
  const report = await reportJob(OWNER_ID, (await listed())?.job_id ?? "", world.reporting);
  expect(report.ok && report.value).toMatchObject({ status: "failed", error: { code: "JOB_INTERRUPTED" } });
});

describe("a job that was lost", () => {
  async function lost(key?: string) {
    const world = asyncWorld();
    const outcome = await world.submit(JOB, key);
    if (!outcome.ok) throw outcome.fault;
    const [{ body } = { body: "" }] = world.sent.splice(0);
    world.clock.advance(JOB_MESSAGE_DAYS * DAY + 1);
    return { world, jobId: outcome.value.job_id, body };
  }

  test("stays failed for everybody, whatever turns up afterwards", async () => {
    const { world, jobId, body } = await lost(KEY);
    const told = await reportJob(OWNER_ID, jobId, world.reporting);
    expect(told.ok && told.value).toMatchObject({ status: "failed", error: { code: "JOB_INTERRUPTED" } });
    expect(await world.take(body)).toBeUndefined();
    expect(await world.cancel(jobId)).toFail("JOB_FINISHED");
    expect(await reportJob(OWNER_ID, jobId, world.reporting)).toEqual(told);
  });

  test("while it ran is failed as well", async () => {
    const world = asyncWorld();
    const { record, body } = await queued(world, JOB);
    await world.take(body, { store: dyingStore(world.store, 3, { done: false }).store });
    world.clock.advance(JOB_MESSAGE_DAYS * DAY + 1);
    const report = await reportJob(OWNER_ID, record.job_id, world.reporting);
    expect(report.ok && report.value).toMatchObject({ status: "failed", error: { code: "JOB_INTERRUPTED" } });
  });

  test("is not lost while its message is sent again", async () => {
    const world = asyncWorld();
    await world.submit(JOB, KEY);
    world.clock.advance(3.9 * DAY);
    expect((await world.submit(JOB, KEY)).ok).toBe(true);
    world.clock.advance(JOB_MESSAGE_DAYS * DAY - 1);
    const [job] = (await listJobs(OWNER_ID, {}, world.reporting)).jobs;
    expect(job).toMatchObject({ status: "queued" });
    expect(await world.take(world.sent.at(-1)?.body ?? "")).toBeUndefined();
    expect((await listJobs(OWNER_ID, {}, world.reporting)).jobs[0]).toMatchObject({ status: "succeeded" });
  });
});

test("a job that is on its way is not sent again by everybody who asks for it", async () => {
  const world = asyncWorld();
  for (let asked = 0; asked < 5; asked += 1) await world.submit(JOB, KEY);
  expect(world.sent).toHaveLength(1);
  world.clock.advance(LEASE_MS);
  await world.submit(JOB, KEY);
  expect(world.sent).toHaveLength(2);
});

test("a job of as many bytes as may be sent can be read by the worker, however its numbers are written", async () => {
  const world = asyncWorld();
  const numbers = `[${Array.from({ length: 5_000 }, () => "1e20").join(",")}]`;
  const request = {
    calls: [{ tool: "make_plan@1", arguments: JSON.parse(`{"goal":"g","steps":["s"],"x":${numbers}}`) }],
  };
  expect(JSON.stringify(request).length).toBeGreaterThan(4.2 * numbers.length);
  expect(JSON.stringify(request).length).toBeLessThan(5 * numbers.length);
  await queued(world, request);
});
