import { expect, test } from "vitest";
import {
  HTTP_SECONDS,
  INTEGRATION_SECONDS,
  MAX_JOB_TIMEOUT_MS,
  NOTIFY_SECONDS,
  RECONCILE_SECONDS,
  REFRESH_SECONDS,
  toVisibilitySeconds,
} from "../../cdk/timeouts.ts";
import { AWS_ATTEMPTS, AWS_TIMEOUTS } from "../../functions/aws/timeouts.ts";
import { LISTING_DEADLINE_MS, REQUESTED_LISTING_DEADLINE_MS } from "../../functions/contract/refresh-limits.ts";

/** A request to the store at its slowest. */
const STORE_SECONDS = (AWS_ATTEMPTS * AWS_TIMEOUTS.requestTimeout) / 1000;

test("while a caller waits, each level ends before the one above: job, function, integration", () => {
  expect(MAX_JOB_TIMEOUT_MS).toBeLessThan(HTTP_SECONDS * 1000);
  expect(HTTP_SECONDS).toBeLessThan(INTEGRATION_SECONDS);
  expect(INTEGRATION_SECONDS).toBeLessThan(30);
});

test("behind the queues, each level ends before the one above: listing, function, visibility of the message", () => {
  expect(LISTING_DEADLINE_MS).toBeLessThan(REFRESH_SECONDS * 1000);
  for (const seconds of [NOTIFY_SECONDS, REFRESH_SECONDS]) {
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
