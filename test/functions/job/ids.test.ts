import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createJobId, isArtifactId, isJobId } from "../../../functions/job/ids.ts";

const idAt = (time: number, byte = 0) => createJobId(time, (count) => new Uint8Array(count).fill(byte));

describe("job ids", () => {
  test("are ids, and sort the newest first", () => {
    const time = fc.integer({ min: 0, max: 2 ** 47 });
    fc.assert(
      fc.property(time, time, fc.nat(255), fc.nat(255), (a, b, random, other) => {
        expect(isJobId(idAt(a, random))).toBe(true);
        if (a !== b) expect(idAt(a, random) < idAt(b, other)).toBe(a > b);
      }),
    );
  });

  test("of one millisecond differ by what is random", () => {
    expect(idAt(1, 1)).not.toBe(idAt(1, 2));
    expect(idAt(1.7)).toBe(idAt(1));
  });

  test.each([
    "",
    "x",
    "../x",
    `${"0".repeat(25)}`,
    `8${"0".repeat(25)}`,
    `0${"0".repeat(24)}u`,
    "0".repeat(27),
    `${"0".repeat(26)}\n`,
    "0".repeat(26).replace("0", "O"),
    `${"0".repeat(13)}/${"0".repeat(12)}`,
  ])("%j is none", (text) => {
    expect(isJobId(text)).toBe(false);
  });
});

test.each([
  ["a1", true],
  ["a10", true],
  ["a16000", true],
  ["a0", false],
  ["a01", false],
  ["1", false],
  ["a", false],
  ["a1/../a2", false],
  ["a1\n", false],
  ["a100000", false],
  ["A1", false],
])("%j is an artifact id: %s", (text, expected) => {
  expect(isArtifactId(text)).toBe(expected);
});
