import { describe, expect, test } from "vitest";
import type * as z from "zod";
import {
  DeadJobsEnv,
  HttpEnv,
  NotifyEnv,
  parseEnv,
  ReconcileEnv,
  RefreshEnv,
  WorkerEnv,
} from "../../../functions/contract/env.ts";
import { Fault } from "../../../functions/contract/fault.ts";
import "../../kit/to-fail.ts";

const QUEUE = "https://sqs.eu-central-1.amazonaws.com/123456789012/queue.fifo";

/** Each function's schema, an environment that fits it, and what becomes of that. */
const FUNCTIONS = {
  http: {
    schema: HttpEnv,
    good: {
      BUCKET_NAME: "bucket",
      NOTIFICATIONS_QUEUE_URL: QUEUE,
      LIMITS: "{}",
      AUTH: '"iam"',
      JOBS_QUEUE_URL: QUEUE,
      ASYNC_JOB_SECONDS: "300",
      ARTIFACT_DAYS: "7",
      MAX_LIST_AGE_SECONDS: "86400",
    },
    parsed: {
      LIMITS: {},
      AUTH: "iam",
      ASYNC_JOB_SECONDS: 300,
      ARTIFACT_DAYS: 7,
      MAX_LIST_AGE_SECONDS: 86_400,
    },
  },
  worker: {
    schema: WorkerEnv,
    good: {
      BUCKET_NAME: "bucket",
      LIMITS: "{}",
      ASYNC_JOB_SECONDS: "300",
      MAX_LIST_AGE_SECONDS: "86400",
    },
    parsed: { LIMITS: {}, ASYNC_JOB_SECONDS: 300, MAX_LIST_AGE_SECONDS: 86_400 },
  },
  "dead-jobs": { schema: DeadJobsEnv, good: { BUCKET_NAME: "bucket" }, parsed: {} },
  notify: {
    schema: NotifyEnv,
    good: { BUCKET_NAME: "bucket", REFRESH_QUEUE_URL: QUEUE, DEBOUNCE_SECONDS: "0.5" },
    parsed: { DEBOUNCE_SECONDS: 0.5 },
  },
  refresh: {
    schema: RefreshEnv,
    good: {
      BUCKET_NAME: "bucket",
      DEBOUNCE_SECONDS: "0.5",
      LONGEST_WAIT_SECONDS: "15",
      MAX_LIST_AGE_SECONDS: "86400",
    },
    parsed: {
      DEBOUNCE_SECONDS: 0.5,
      LONGEST_WAIT_SECONDS: 15,
      MAX_LIST_AGE_SECONDS: 86_400,
    },
  },
  reconcile: {
    schema: ReconcileEnv,
    good: {
      BUCKET_NAME: "bucket",
      NOTIFICATIONS_QUEUE_URL: QUEUE,
      RECONCILE_SECONDS: "900",
      MAX_LIST_AGE_SECONDS: "86400",
    },
    parsed: { RECONCILE_SECONDS: 900, MAX_LIST_AGE_SECONDS: 86_400 },
  },
} as const;

function faultOf(schema: z.ZodType, env: Readonly<Record<string, string | undefined>>): Fault {
  try {
    parseEnv(schema, env);
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error("the environment was accepted");
}

describe.each(Object.entries(FUNCTIONS))("the environment of %s", (_, { schema, good, parsed }) => {
  test("is parsed into typed values, whatever else it holds", () => {
    const told = parseEnv<z.ZodType>(schema, { ...good, PATH: "/usr/bin", AWS_REGION: "eu-central-1" });
    expect(told).toEqual({ ...good, ...parsed });
  });

  test("that is empty is refused with every variable's name", () => {
    const { code, message } = faultOf(schema, {});
    expect(code).toBe("DEFECT");
    for (const name of Object.keys(good)) expect(message).toContain(name);
  });

  test("that opens nothing by a variable left out", () => {
    for (const name of Object.keys(good))
      expect(faultOf(schema, { ...good, [name]: undefined }).message).toContain(name);
  });
});

describe("an environment", () => {
  const { http, worker, refresh, reconcile } = FUNCTIONS;
  const NOT_SECONDS = ["", " 1", "1 ", "1s", "+1", "-1", "1e1", "0x10", ".5", "01", "1.", "NaN", "Infinity", "1\n"];

  test.each([
    ["BUCKET_NAME", http, ["", "ab", "x".repeat(64)]],
    [
      "LIMITS",
      http,
      ["", "[]", "null", '{"calls":1}', '{"max_calls":0}', '{"max_calls":1,"max_calls":2}', '{"__proto__":{}}'],
    ],
    ["AUTH", http, ["", "iam", '"open"', '"IAM"', '"iam "', "{}", '{"issuer":"x"}', "null"]],
    ["ARTIFACT_DAYS", http, ["", "0", "07", "-1", "1.5", "1e3", " 7", "seven", "10000", "7\n"]],
    [
      "NOTIFICATIONS_QUEUE_URL",
      http,
      ["", "queue", "arn:aws:sqs:eu-central-1:123456789012:queue", "file:///etc/queue"],
    ],
    ["JOBS_QUEUE_URL", http, ["", "queue"]],
    ["ASYNC_JOB_SECONDS", http, [...NOT_SECONDS, "0", "841", "1.5"]],
    ["MAX_LIST_AGE_SECONDS", http, [...NOT_SECONDS, "299", "300.5", "2592001"]],
    ["DEBOUNCE_SECONDS", refresh, [...NOT_SECONDS, "0", "0.09", "60.1"]],
    ["LONGEST_WAIT_SECONDS", refresh, [...NOT_SECONDS, "0.9", "900.1"]],
    ["RECONCILE_SECONDS", reconcile, [...NOT_SECONDS, "59", "60.5", "86401"]],
    ["MAX_LIST_AGE_SECONDS", reconcile, [...NOT_SECONDS, "299", "300.5", "2592001"]],
  ] as const)("that has a %s out of range is refused by that name alone", (name, { schema, good }, values) => {
    for (const value of values) {
      const { message } = faultOf(schema, { ...good, [name]: value });
      for (const other of Object.keys(good))
        expect([value, other, message.includes(other)]).toEqual([value, other, other === name]);
    }
  });

  test.each([
    ["DEBOUNCE_SECONDS", refresh, [0.1, 0.1 + 0.2, 60]],
    ["LONGEST_WAIT_SECONDS", refresh, [1, 900]],
    ["MAX_LIST_AGE_SECONDS", refresh, [300, 2_592_000]],
    ["ASYNC_JOB_SECONDS", worker, [1, 840]],
    ["RECONCILE_SECONDS", reconcile, [60, 86_400]],
    ["MAX_LIST_AGE_SECONDS", reconcile, [300, 2_592_000]],
  ] as const)("that has %s at its bounds is taken, exactly", (name, { schema, good }, values) => {
    for (const value of values) {
      expect(parseEnv<z.ZodType>(schema, { ...good, [name]: String(value) })).toHaveProperty(name, value);
    }
  });

  test("that is wrong does not give its values away", () => {
    const wrong = { LIMITS: "{SECRET", AUTH: "SECRET", NOTIFICATIONS_QUEUE_URL: "SECRET" };
    expect(faultOf(http.schema, { ...http.good, ...wrong }).message).not.toContain("SECRET");
    expect(faultOf(refresh.schema, { ...refresh.good, DEBOUNCE_SECONDS: "SECRET" }).message).not.toContain("SECRET");
  });
});
