import { expect, test } from "vitest";
import { toDelaySeconds } from "../../../functions/contract/refresh-limits.ts";
import { OperatorSettings } from "../../../functions/contract/settings.ts";

test.each([
  [0.1, 1],
  [0.4, 1],
  [0.5, 1],
  [0.51, 2],
  [1, 2],
  [1.5, 2],
  [1.51, 3],
  [15, 16],
  [60, 61],
])("a window of %d s holds messages back for %d s", (window, delay) => {
  expect(toDelaySeconds(window)).toBe(delay);
});

test("every window that can be chosen is held back by a whole number of seconds that SQS takes, never by less than it", () => {
  const { debounceSeconds } = OperatorSettings.shape;
  const windows = Array.from({ length: 1_000 }, (_, index) => (index + 1) / 10).filter(
    (window) => debounceSeconds.safeParse(window).success,
  );
  expect(windows).toHaveLength(600);
  for (const window of windows) {
    const delay = toDelaySeconds(window);
    expect(Number.isInteger(delay) && delay <= 900).toBe(true);
    expect(delay).toBeGreaterThanOrEqual(window + Math.min(window, 0.5));
  }
});
