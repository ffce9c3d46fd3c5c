import { expect, test } from "vitest";
import { findBroken, range, SCHEDULES } from "./schedules.ts";

test(`over the second half of ${SCHEDULES} schedules, nothing is lost, starves or stampedes`, {
  timeout: 240_000,
}, async () => {
  expect(await findBroken(range(SCHEDULES / 2, SCHEDULES))).toEqual([]);
});
