import fc from "fast-check";
import { expect, test } from "vitest";
import { Quota } from "../../../functions/broker/quota.ts";

test("never gives more than its limit, and a refusal costs nothing", () => {
  fc.assert(
    fc.property(fc.nat(100), fc.array(fc.nat(40)), (limit, amounts) => {
      const quota = new Quota(limit);
      let used = 0;
      for (const amount of amounts) {
        const fits = used + amount <= limit;
        expect(quota.take(amount)).toBe(fits);
        if (fits) used += amount;
      }
      expect(used).toBeLessThanOrEqual(limit);
    }),
  );
});

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("gives no %d units", (amount) => {
  const quota = new Quota(5);
  expect(quota.take(amount)).toBe(false);
  expect(quota.take(5)).toBe(true);
});
