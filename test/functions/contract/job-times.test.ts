import { describe, expect, test } from "vitest";
import {
  JOB_DEAD_LETTER_DAYS,
  JOB_MESSAGE_DAYS,
  JOB_WAITING_DAYS,
  toSyncLeaseMs,
  toWorkerSeconds,
  WORKER_MARGIN_SECONDS,
} from "../../../functions/contract/job-times.ts";
import { DEFAULT_LIMITS } from "../../../functions/contract/limits.ts";
import { MOST_ASYNC_JOB_SECONDS } from "../../../functions/contract/time-settings.ts";

describe("a key is held", () => {
  test.each([
    [1, 30_000],
    [DEFAULT_LIMITS.job_timeout_ms, 30_000],
    [20_001, 30_001],
    [90_000, 100_000],
  ])(
    "for a job of %i ms for %i ms: no less than its function lives, and ten seconds more than the job has",
    (job, lease) => {
      expect(toSyncLeaseMs(job)).toBe(lease);
    },
  );
});

test("a worker has time beyond its job's, and the longest job fits into what Lambda allows", () => {
  expect(toWorkerSeconds(1)).toBe(1 + WORKER_MARGIN_SECONDS);
  expect(toWorkerSeconds(MOST_ASYNC_JOB_SECONDS)).toBe(900);
});

test("a job is lost only when neither its queue nor its dead letters can hold a message of it", () => {
  expect(JOB_MESSAGE_DAYS).toBeGreaterThanOrEqual(JOB_WAITING_DAYS + JOB_DEAD_LETTER_DAYS);
});
