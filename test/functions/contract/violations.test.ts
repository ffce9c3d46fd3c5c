import { describe, expect, test } from "vitest";
import * as z from "zod";
import { toPointer, toViolations } from "../../../functions/contract/violations.ts";

const Order = z.strictObject({ id: z.string(), lines: z.array(z.strictObject({ count: z.int().min(1) })) });

function violationsOf(value: unknown) {
  const parsed = Order.safeParse(value);
  return parsed.success ? [] : toViolations(parsed.error);
}

describe("violations", () => {
  test("stand where the input is wrong, each unknown key by itself and sorted", () => {
    const paths = violationsOf({ id: 1, lines: [{ count: 0, z: 1, B: 1, a: 1 }], "x/y~z": 1 }).map(({ path }) => path);
    expect(paths).toEqual(["/id", "/lines/0/count", "/lines/0/B", "/lines/0/a", "/lines/0/z", "/x~1y~0z"]);
  });

  test("say of what is missing that it is required", () => {
    expect(violationsOf({ lines: [] })).toEqual([{ path: "/id", message: "is required" }]);
  });

  test("say what was wanted and what was got, without a headline", () => {
    expect(violationsOf([])).toEqual([{ path: "", message: "expected object, received array" }]);
  });
});

test.each([
  [[], ""],
  [["a", 0, "b"], "/a/0/b"],
  [["a/b", "~"], "/a~1b/~0"],
  [[""], "/"],
])("the pointer of %j is %j", (segments, pointer) => {
  expect(toPointer(segments)).toBe(pointer);
});
