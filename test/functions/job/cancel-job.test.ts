import { expect, test } from "vitest";
import "../../kit/to-fail.ts";
import { asyncWorld, OWNER_ID, queued } from "./async-world.ts";
import { planCall } from "./job-context.ts";

const JOB = { calls: [planCall()] };

test("a queued job that is cancelled never runs, and what it was asked to do is removed", async () => {
  const world = asyncWorld();
  const { record, body } = await queued(world, JOB);
  world.clock.advance(5_000);
  const cancelled = await world.cancel(record.job_id);
  const finished_at = new Date(Date.parse(record.created_at) + 5_000).toISOString();
  expect(cancelled.ok && cancelled.value).toMatchObject({
    status: "failed",
    finished_at,
    error: { code: "JOB_CANCELLED" },
  });
  expect(await world.keys()).toEqual([`jobs/${OWNER_ID}/${record.job_id}.json`]);
  expect(await world.take(body)).toBeUndefined();
  expect(await world.recordOf(record.job_id)).toEqual(cancelled.ok && cancelled.value);
});

test("cancelling twice answers the same twice", async () => {
  const world = asyncWorld();
  const { record } = await queued(world, JOB);
  const first = await world.cancel(record.job_id);
  world.clock.advance(5_000);
  expect(await world.cancel(record.job_id)).toEqual(first);
});

test("a job that has ended is not cancelled, and stays as it is", async () => {
  const world = asyncWorld();
  const { record, body } = await queued(world, JOB);
  await world.take(body);
  const kept = await world.recordOf(record.job_id);
  expect(await world.cancel(record.job_id)).toFail("JOB_FINISHED");
  expect(await world.recordOf(record.job_id)).toEqual(kept);
});

test("a job of somebody else, or of nobody, is not there", async () => {
  const world = asyncWorld();
  const { record } = await queued(world, JOB);
  expect(await world.cancel(record.job_id, "f".repeat(32))).toFail("JOB_NOT_FOUND");
  expect(await world.cancel("no-such-job")).toFail("JOB_NOT_FOUND");
  expect(await world.recordOf(record.job_id)).toMatchObject({ status: "queued" });
});
