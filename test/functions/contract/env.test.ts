import { describe, expect, test } from "vitest";
import { HttpEnv, parseEnv } from "../../../functions/contract/env.ts";
import { Fault } from "../../../functions/contract/fault.ts";
import "../../kit/to-fail.ts";

const GOOD = {
  BUCKET_NAME: "bucket",
  APPROVED_TOOLS: '["local"]',
  LIMITS: "{}",
  AUTH: "iam",
  ARTIFACT_DAYS: "7",
};

function faultOf(env: Readonly<Record<string, string | undefined>>): Fault {
  try {
    parseEnv(HttpEnv, env);
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error("the environment was accepted");
}

describe("the environment", () => {
  test("is parsed into typed values, whatever else it holds", () => {
    expect(parseEnv(HttpEnv, { ...GOOD, PATH: "/usr/bin", AWS_REGION: "eu-central-1" })).toEqual({
      BUCKET_NAME: "bucket",
      APPROVED_TOOLS: ["local"],
      LIMITS: {},
      AUTH: "iam",
      ARTIFACT_DAYS: 7,
    });
  });

  test("that is empty is refused with every variable's name", () => {
    const { code, message } = faultOf({});
    expect(code).toBe("DEFECT");
    for (const name of Object.keys(GOOD)) expect(message).toContain(name);
  });

  test.each([
    ["BUCKET_NAME", ["", "ab", "x".repeat(64)]],
    ["APPROVED_TOOLS", ["", "local", "{}", '"local"', "[1]", '["local"', '[["local"]]', "null"]],
    [
      "LIMITS",
      ["", "[]", "null", '{"calls":1}', '{"max_calls":0}', '{"max_calls":1,"max_calls":2}', '{"__proto__":{}}'],
    ],
    ["AUTH", ["", "open", "IAM", "iam "]],
    ["ARTIFACT_DAYS", ["", "0", "07", "-1", "1.5", "1e3", " 7", "seven", "10000", "7\n"]],
  ] as const)("that has a %s out of range is refused by that name alone", (name, values) => {
    for (const value of values) {
      const { message } = faultOf({ ...GOOD, [name]: value });
      for (const other of Object.keys(GOOD))
        expect([value, other, message.includes(other)]).toEqual([value, other, other === name]);
    }
  });

  test("that opens nothing by a variable left out", () => {
    for (const name of Object.keys(GOOD)) expect(faultOf({ ...GOOD, [name]: undefined }).message).toContain(name);
  });

  test("that is wrong does not give its values away", () => {
    expect(faultOf({ ...GOOD, APPROVED_TOOLS: "[SECRET", AUTH: "SECRET" }).message).not.toContain("SECRET");
  });
});
