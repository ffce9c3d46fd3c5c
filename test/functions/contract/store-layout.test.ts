import { expect, test } from "vitest";
import {
  ARTIFACTS_PREFIX,
  CATALOG_KEY,
  DEBOUNCE_PREFIX,
  JOBS_PREFIX,
  toLifecycle,
} from "../../../functions/contract/store-layout.ts";

const PREFIXES = [ARTIFACTS_PREFIX, JOBS_PREFIX, DEBOUNCE_PREFIX];

test("files go after the days chosen, records a month later, what the debounce remembers after a week", () => {
  expect(toLifecycle(3)).toEqual([
    { prefix: "artifacts/", days: 3 },
    { prefix: "jobs/", days: 33 },
    { prefix: "debounce/", days: 7 },
  ]);
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
