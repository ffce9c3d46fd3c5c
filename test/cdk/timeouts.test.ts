import { expect, test } from "vitest";
import {
  DEAD_JOBS_SECONDS,
  HTTP_SECONDS,
  INTEGRATION_SECONDS,
  MAX_JOB_TIMEOUT_MS,
  NOTIFY_SECONDS,
  RECONCILE_SECONDS,
  REFRESH_SECONDS,
  toVisibilitySeconds,
} from "../../cdk/timeouts.ts";
import { AWS_ATTEMPTS, AWS_TIMEOUTS } from "../../functions/aws/timeouts.ts";
import { toSyncLeaseMs, toWorkerSeconds, WORKER_MARGIN_SECONDS } from "../../functions/contract/job-times.ts";
import { LISTING_DEADLINE_MS, REQUESTED_LISTING_DEADLINE_MS } from "../../functions/contract/refresh-limits.ts";
import { MOST_ASYNC_JOB_SECONDS } from "../../functions/contract/time-settings.ts";

/** A request to the store at its slowest. */
const STORE_SECONDS = (AWS_ATTEMPTS * AWS_TIMEOUTS.requestTimeout) / 1000;

test("while a caller waits, each level ends before the one above: job, function, integration", () => {
  expect(MAX_JOB_TIMEOUT_MS).toBeLessThan(HTTP_SECONDS * 1000);
  expect(HTTP_SECONDS).toBeLessThan(INTEGRATION_SECONDS);
  expect(INTEGRATION_SECONDS).toBeLessThan(30);
});

test("behind the queues, each level ends before the one above: listing, function, visibility of the message", () => {
  expect(LISTING_DEADLINE_MS).toBeLessThan(REFRESH_SECONDS * 1000);
  const longestWorker = toWorkerSeconds(MOST_ASYNC_JOB_SECONDS);
  expect(longestWorker).toBeLessThanOrEqual(900);
  for (const seconds of [NOTIFY_SECONDS, REFRESH_SECONDS, DEAD_JOBS_SECONDS, longestWorker]) {
    expect(toVisibilitySeconds(seconds)).toBe(6 * seconds);
    expect(toVisibilitySeconds(seconds)).toBeLessThanOrEqual(12 * 3600);
  }
});

test("after a listing the store may be at its slowest once while a caller waits, twice behind the queue", () => {
  expect(HTTP_SECONDS - REQUESTED_LISTING_DEADLINE_MS / 1000).toBeGreaterThanOrEqual(STORE_SECONDS);
  expect(REFRESH_SECONDS - LISTING_DEADLINE_MS / 1000).toBeGreaterThanOrEqual(2 * STORE_SECONDS);
});

test("a run of the reconciling function ends before the next minute begins", () => {
  expect(RECONCILE_SECONDS).toBeLessThan(60);
});

test("a worker has time after its job for the store at its slowest, several times over", () => {
  expect(toWorkerSeconds(1) - 1).toBe(WORKER_MARGIN_SECONDS);
  expect(WORKER_MARGIN_SECONDS).toBeGreaterThanOrEqual(5 * STORE_SECONDS);
});

test("a key is held for longer than the function lives that runs a job under it", () => {
  for (const job of [1, MAX_JOB_TIMEOUT_MS]) expect(toSyncLeaseMs(job)).toBeGreaterThan(HTTP_SECONDS * 1000);
  expect(toSyncLeaseMs(90_000)).toBeGreaterThan(90_000);
});
