import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DEFAULT_LIMITS, LimitsInput, narrowLimits, operatorLimits } from "../../../functions/contract/limits.ts";
import "../../kit/to-fail.ts";

const NAMES = Object.keys(DEFAULT_LIMITS).map((name) => LimitsInput.keyof().parse(name));

describe("limits", () => {
  test("are, by default, those of the contract", () => {
    expect(operatorLimits({})).toEqual({
      max_calls: 16,
      call_timeout_ms: 5_000,
      job_timeout_ms: 20_000,
      max_argument_bytes: 262_144,
      max_output_bytes: 65_536,
      max_artifact_bytes: 4_194_304,
      max_total_artifact_bytes: 16_777_216,
      link_seconds: 900,
    });
  });

  test("an operator may set one, higher or lower, and keeps the others", () => {
    expect(operatorLimits({ max_calls: 20, link_seconds: 60 })).toEqual({
      ...DEFAULT_LIMITS,
      max_calls: 20,
      link_seconds: 60,
    });
    expect(operatorLimits({ max_calls: undefined })).toEqual(DEFAULT_LIMITS);
  });

  test.each(NAMES)("a job may ask for all of %s or less, never for more", (name) => {
    const allowed = DEFAULT_LIMITS[name];
    expect(narrowLimits(DEFAULT_LIMITS, { [name]: allowed })).toEqual({ ok: true, value: DEFAULT_LIMITS });
    expect(narrowLimits(DEFAULT_LIMITS, { [name]: 1 })).toEqual({ ok: true, value: { ...DEFAULT_LIMITS, [name]: 1 } });
    expect(narrowLimits(DEFAULT_LIMITS, { [name]: allowed + 1 })).toFail("REQUEST_INVALID");
  });

  test("every limit that was raised is named", () => {
    const refused = narrowLimits(DEFAULT_LIMITS, { link_seconds: 901, max_calls: 17, max_output_bytes: 1 });
    expect(refused.ok ? [] : refused.fault.violations.map(({ path }) => path).sort()).toEqual([
      "/limits/link_seconds",
      "/limits/max_calls",
    ]);
  });

  test("whatever a job asks for, nothing that it gets is above the operator's", () => {
    const asked = fc.record(Object.fromEntries(NAMES.map((name) => [name, fc.integer({ min: 1, max: 30_000_000 })])), {
      requiredKeys: [],
    });
    fc.assert(
      fc.property(asked, (limits) => {
        const narrowed = narrowLimits(DEFAULT_LIMITS, limits);
        if (narrowed.ok)
          for (const name of NAMES) expect(narrowed.value[name]).toBeLessThanOrEqual(DEFAULT_LIMITS[name]);
        else expect(NAMES.some((name) => (limits[name] ?? 0) > DEFAULT_LIMITS[name])).toBe(true);
      }),
    );
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "16", null, 2 ** 60])("%j is no limit", (value) => {
    expect(LimitsInput.safeParse({ max_calls: value }).success).toBe(false);
  });

  test("an unknown name, and a link of more than seven days, are refused", () => {
    expect(LimitsInput.safeParse({ max_call: 1 }).success).toBe(false);
    expect(LimitsInput.safeParse({ link_seconds: 7 * 24 * 3600 }).success).toBe(true);
    expect(LimitsInput.safeParse({ link_seconds: 7 * 24 * 3600 + 1 }).success).toBe(false);
  });
});
