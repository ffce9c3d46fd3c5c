import { describe, expect, test } from "vitest";
import { Fault } from "../../../functions/contract/fault.ts";
import { createJsonLog } from "../../../functions/wiring/json-log.ts";

function logged(fields: Readonly<Record<string, unknown>>) {
  const lines: string[] = [];
  createJsonLog((line) => lines.push(line))("error", "it failed", fields);
  expect(lines).toHaveLength(1);
  const [line = ""] = lines;
  expect(line).not.toContain("\n");
  return JSON.parse(line);
}

describe("a log line", () => {
  test("is one JSON object with level, message and fields", () => {
    expect(logged({ path: "/a\nb", status: 200 })).toEqual({
      level: "error",
      message: "it failed",
      path: "/a\nb",
      status: 200,
    });
  });

  test("holds an error with its stack, code and causes", () => {
    const error = new Fault("REPOSITORY_REFUSED", "refused", { cause: new TypeError("broken", { cause: "the disk" }) });
    const { error: written } = logged({ error });
    expect(written).toMatchObject({
      name: "Fault",
      message: "refused",
      code: "REPOSITORY_REFUSED",
      cause: { name: "TypeError", message: "broken", cause: "the disk" },
    });
    expect(written.stack).toContain("json-log.test.ts");
  });

  test("holds every error of several", () => {
    expect(logged({ error: new AggregateError([new Error("one"), new Error("two")]) }).error.errors).toMatchObject([
      { message: "one" },
      { message: "two" },
    ]);
  });

  test("ends where an error is its own cause", () => {
    const error = new Error("round");
    error.cause = error;
    expect(logged({ error }).error.message).toBe("round");
  });

  test("is written though a field cannot be", () => {
    const round: { self?: unknown } = {};
    round.self = round;
    expect(logged({ round, job_id: "j1" })).toEqual({
      level: "error",
      message: "it failed",
      unwritable: "round job_id",
    });
    expect(logged({ size: 10n })).toMatchObject({ size: "10" });
  });
});
