import { expect, test } from "vitest";
import { JOB_MESSAGE_DAYS } from "../../../functions/contract/job-times.ts";
import {
  ARTIFACTS_PREFIX,
  CATALOG_KEY,
  DEBOUNCE_PREFIX,
  IDEMPOTENCY_PREFIX,
  JOBS_PREFIX,
  REQUESTS_PREFIX,
  toLifecycle,
} from "../../../functions/contract/store-layout.ts";

const PREFIXES = [ARTIFACTS_PREFIX, JOBS_PREFIX, DEBOUNCE_PREFIX, REQUESTS_PREFIX, IDEMPOTENCY_PREFIX];

test("files go after the days chosen, records a month later, what is remembered for a time after that time", () => {
  expect(toLifecycle(3)).toEqual([
    { prefix: "artifacts/", days: 3 },
    { prefix: "jobs/", days: 33 },
    { prefix: "debounce/", days: 7 },
    { prefix: "requests/", days: 30 },
    { prefix: "idempotency/", days: 7 },
  ]);
});

test("a job as it was sent outlives its message, in the queue and among the dead letters", () => {
  const request = toLifecycle(1).find(({ prefix }) => prefix === REQUESTS_PREFIX);
  expect(request?.days).toBeGreaterThan(JOB_MESSAGE_DAYS);
});

test("the catalog stays", () => {
  expect(toLifecycle(1).filter(({ prefix }) => CATALOG_KEY.startsWith(prefix))).toEqual([]);
});

test("no two kinds of things share a key", () => {
  for (const prefix of PREFIXES) {
    const others = [...PREFIXES.filter((other) => other !== prefix), CATALOG_KEY];
    expect(others.filter((other) => other.startsWith(prefix) || prefix.startsWith(other))).toEqual([]);
  }
});
