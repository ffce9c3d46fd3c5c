import { expect, test } from "vitest";
import "../../kit/to-fail.ts";
import { asyncWorld, OWNER_ID, queued } from "./async-world.ts";
import { dyingStore } from "./dying-store.ts";
import { LEASE_MS, planCall } from "./job-context.ts";

const JOB = { calls: [planCall()] };

test("a job whose message died is failed and says why, and the log is loud about it", async () => {
  const world = asyncWorld();
  const { record, body } = await queued(world, JOB);
  expect(await world.giveUp(body)).toBeUndefined();
  const kept = await world.recordOf(record.job_id);
  expect(kept).toMatchObject({ status: "failed", error: { code: "JOB_INTERRUPTED" } });
  expect(kept?.error?.message).toContain("5 times");
  expect((await world.keys()).filter((key) => key.startsWith("requests/"))).toEqual([]);
  expect(world.logged).toContainEqual({ level: "error", fields: { job_id: record.job_id, code: "JOB_INTERRUPTED" } });
});

test("a job whose worker died with this very message is given up at once", async () => {
  const world = asyncWorld();
  const { record, body } = await queued(world, JOB);
  await world.take(body, { store: dyingStore(world.store, 3, { done: false }).store });
  expect(await world.recordOf(record.job_id)).toMatchObject({ status: "running", lease: { message_id: "m1" } });
  expect(await world.giveUp(body)).toBeUndefined();
  expect(await world.recordOf(record.job_id)).toMatchObject({ status: "failed" });
});

test("a job that a worker holds by another message is left to it until the lease is over", async () => {
  const world = asyncWorld();
  const { record, body } = await queued(world, JOB);
  await world.take(body, { store: dyingStore(world.store, 3, { done: false }).store }, { id: "m2" });
  expect(await world.giveUp(body)).toFail("JOB_HELD");
  world.clock.advance(LEASE_MS);
  expect(await world.giveUp(body)).toBeUndefined();
  expect(await world.recordOf(record.job_id)).toMatchObject({ status: "failed" });
});

test("a job that has ended stays as it is", async () => {
  const world = asyncWorld();
  const { record, body } = await queued(world, JOB);
  await world.take(body);
  const kept = await world.recordOf(record.job_id);
  expect(await world.giveUp(body)).toBeUndefined();
  expect(await world.recordOf(record.job_id)).toEqual(kept);
  expect(world.logged.filter(({ level }) => level === "error")).toEqual([]);
});

test.each(["{", '{"owner":"x"}', `{"owner":"${OWNER_ID}","job_id":"7ybqaby9kz9yvhyj833nfcx86s"}`])(
  "a dead letter that is no job's is done with: %s",
  async (body) => {
    expect(await asyncWorld().giveUp(body)).toBeUndefined();
  },
);

test("a letter comes again when the record could not be written", async () => {
  const world = asyncWorld({}, (store) => ({
    ...store,
    put: async () => Promise.reject(new Error("the store is down")),
  }));
  const queuing = { ...world.queueContext, store: world.store };
  const outcome = await world.submit(JOB, undefined, queuing);
  expect(outcome.ok).toBe(true);
  expect(await world.giveUp(world.sent[0]?.body ?? "")).toFail("DEFECT");
});
