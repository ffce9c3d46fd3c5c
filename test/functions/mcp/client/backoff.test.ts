import { describe, expect, test } from "vitest";
import { createBackoff } from "../../../../functions/mcp/client/backoff.ts";

const LIMITS = { firstDelayMs: 1_000, longestDelayMs: 5_000 };
const pauses = (random: () => number, count: number) => {
  const backoff = createBackoff(LIMITS, random);
  return Array.from({ length: count }, () => backoff.next());
};

describe("the pauses between attempts", () => {
  test("double up to the longest, and never pass it", () => {
    expect(pauses(() => 0.999_999, 5).map(Math.round)).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
  });

  test("are at least half as long when chance will have it", () => {
    expect(pauses(() => 0, 5)).toEqual([500, 1_000, 2_000, 2_500, 2_500]);
  });

  test("begin anew after a success", () => {
    const backoff = createBackoff(LIMITS, () => 0);
    backoff.next();
    backoff.next();
    backoff.reset();
    expect(backoff.next()).toBe(500);
  });
});
