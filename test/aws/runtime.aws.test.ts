import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { createLambda, type Lambda } from "./kit/lambda.ts";
import type { FunctionSetup } from "./kit/runtime-api.ts";

/** The execution environment of the harness, by functions that are written to try it. */

const directory = mkdtempSync(join(tmpdir(), "skillbroker-runtime-"));
const lambdas: Lambda[] = [];

afterEach(async () => {
  await Promise.all(lambdas.splice(0).map((lambda) => lambda.close()));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let written = 0;

/** A function of this code. */
function makeLambda(code: string, changes: Partial<FunctionSetup> = {}): Lambda {
  written += 1;
  const taskRoot = join(directory, `${written}`);
  mkdirSync(taskRoot);
  writeFileSync(join(taskRoot, "index.mjs"), code);
  const lambda = createLambda({
    name: "probe",
    arn: "arn:aws:lambda:eu-central-1:000000000000:function:probe",
    region: "eu-central-1",
    taskRoot,
    handler: "index.handler",
    timeoutMs: 2000,
    memoryMiB: 256,
    traced: true,
    variables: { GIVEN: "yes" },
    ...changes,
  });
  lambdas.push(lambda);
  return lambda;
}

describe("an invocation", () => {
  test("has the event, the context and the environment of a function, and none of the tests' own", async () => {
    const lambda = makeLambda(`
      export const handler = async (event, { getRemainingTimeInMillis, ...context }) => {
        console.log("a line");
        return { event, context, left: getRemainingTimeInMillis(), env: process.env, cwd: process.cwd() };
      };`);
    const invoked = await lambda.invoke({ a: [1, "ü"] });
    expect(invoked).toMatchObject({
      ok: true,
      value: {
        event: { a: [1, "ü"] },
        context: {
          awsRequestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
          functionName: "probe",
          functionVersion: "$LATEST",
          invokedFunctionArn: lambda.setup.arn,
          memoryLimitInMB: "256",
        },
        env: { GIVEN: "yes", _HANDLER: "index.handler", LAMBDA_TASK_ROOT: lambda.setup.taskRoot, TZ: ":UTC" },
        cwd: lambda.setup.taskRoot,
      },
    });
    const { env, left } = Object(invoked.ok ? invoked.value : {});
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(2000);
    expect(Object.keys(env).filter((name) => !/^(AWS_|LAMBDA_|_|TZ$|LANG$|GIVEN$)/.test(name))).toEqual([]);
    await expect.poll(() => lambda.lines()).toEqual(["a line"]);
  });

  test("tells a process by its environment which trace it is part of, another each time", async () => {
    const lambda = makeLambda("export const handler = async () => process.env._X_AMZN_TRACE_ID;");
    const traces = [await lambda.invoke({}), await lambda.invoke({})];
    for (const trace of traces) {
      const value = expect.stringMatching(/^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=1$/);
      expect(trace).toEqual({ ok: true, value });
    }
    expect(traces[0]).not.toEqual(traces[1]);
  });

  test("that throws fails with what was thrown, and the process takes the next", async () => {
    const lambda = makeLambda(`
      export const handler = async ({ bad }) => {
        if (bad) throw new TypeError("no good");
        return process.pid;
      };`);
    const before = await lambda.invoke({});
    expect(await lambda.invoke({ bad: true })).toEqual({
      ok: false,
      error: { errorType: "TypeError", errorMessage: "no good" },
    });
    expect(await lambda.invoke({})).toEqual(before);
    expect(lambda.coldStarts()).toBe(1);
  });

  test("in which the process ends fails, and the next has another process", async () => {
    const lambda = makeLambda("export const handler = async ({ end }) => (end ? process.exit(7) : process.pid);");
    const before = await lambda.invoke({});
    expect(await lambda.invoke({ end: true })).toMatchObject({
      error: { errorType: "Runtime.ExitError", errorMessage: expect.stringContaining("exit status 7") },
    });
    expect(await lambda.invoke({})).not.toEqual(before);
    expect(lambda.coldStarts()).toBe(2);
  });

  test("that spins is ended at the timeout", async () => {
    const lambda = makeLambda("export const handler = async () => { for (;;); };", { timeoutMs: 300 });
    expect(await lambda.invoke({})).toMatchObject({
      error: {
        errorType: "Sandbox.Timedout",
        errorMessage: expect.stringMatching(/Task timed out after 0\.30 seconds$/),
      },
    });
    expect(lambda.idlePids()).toEqual([]);
  });

  test("whose answer is larger than Lambda takes fails", async () => {
    const lambda = makeLambda('export const handler = async ({ size }) => "x".repeat(size - 2);');
    expect(await lambda.invoke({ size: 6_291_556 })).toMatchObject({ ok: true });
    expect(await lambda.invoke({ size: 6_291_557 })).toMatchObject({
      error: { errorType: "Function.ResponseSizeTooLarge" },
    });
  });

  test("whose event is larger than Lambda takes is not begun", async () => {
    const lambda = makeLambda("export const handler = async () => null;");
    expect(await lambda.invoke("x".repeat(6_291_455))).toMatchObject({
      error: { errorType: "RequestEntityTooLargeException" },
    });
    expect(lambda.coldStarts()).toBe(0);
  });
});

describe("a process", () => {
  test("that comes while another is at work is one more, and both serve later", async () => {
    const lambda = makeLambda(`
      import { existsSync } from "node:fs";
      export const handler = async ({ until }) => {
        while (until && !existsSync(until)) await new Promise((done) => setTimeout(done, 5));
        return process.pid;
      };`);
    const mark = join(directory, "mark");
    const slow = lambda.invoke({ until: mark });
    const quick = await lambda.invoke({});
    writeFileSync(mark, "");
    expect(await slow).not.toEqual(quick);
    expect({ starts: lambda.coldStarts(), idle: lambda.idlePids().length }).toEqual({ starts: 2, idle: 2 });
  });

  test.skipIf(process.platform !== "linux")("stands still between two invocations, and runs in the next", async () => {
    const lambda = makeLambda("export const handler = async () => process.pid;");
    const { value } = Object(await lambda.invoke({}));
    const state = () => /\) (\w)/.exec(readFileSync(`/proc/${value}/stat`, "utf8"))?.[1];
    await expect.poll(state).toBe("T");
    expect(await lambda.invoke({})).toEqual({ ok: true, value });
  });

  test("that cannot import its handler says why", async () => {
    const lambda = makeLambda('throw new RangeError("not today");');
    expect(await lambda.invoke({})).toEqual({
      ok: false,
      error: { errorType: "RangeError", errorMessage: "not today" },
    });
  });

  test("whose handler is not there says which one is missing", async () => {
    const lambda = makeLambda("export const other = 1;");
    expect(await lambda.invoke({})).toMatchObject({
      error: { errorMessage: "index.handler is undefined or not exported" },
    });
  });

  test("finds no package that does not lie beside its code", async () => {
    const lambda = makeLambda('import "zod"; export const handler = async () => null;');
    expect(await lambda.invoke({})).toMatchObject({ error: { errorMessage: expect.stringContaining("'zod'") } });
  });

  test("that is killed at work fails what it was at", async () => {
    const lambda = makeLambda(
      'export const handler = () => { console.log("begun"); return new Promise(() => setInterval(() => {}, 9)); };',
    );
    const invoked = lambda.invoke({});
    await expect.poll(() => lambda.lines()).toEqual(["begun"]);
    expect(await lambda.kill()).toBe(1);
    expect(await invoked).toMatchObject({ error: { errorMessage: expect.stringContaining("signal: SIGKILL") } });
  });
});
