import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { type FunctionError, readFunctionError } from "./function-error.ts";

/**
 * One execution environment of a function: a process, and the Runtime API that it asks for work. Between two
 * invocations the process stands still, as Lambda freezes it.
 */

export type FunctionSetup = {
  readonly name: string;
  readonly arn: string;
  readonly region: string;
  /** Where the code is. */
  readonly taskRoot: string;
  /** `<file>.<export>` */
  readonly handler: string;
  readonly timeoutMs: number;
  readonly memoryMiB: number;
  /** Every invocation is sampled. */
  readonly traced: boolean;
  /** The environment but for what Lambda itself sets. */
  readonly variables: Readonly<Record<string, string>>;
};

export type InvocationOutcome =
  | { readonly ok: true; readonly payload: string }
  | { readonly ok: false; readonly error: FunctionError };

export type Environment = {
  readonly pid: number | undefined;
  /** One at a time. Resolves whatever happens to the process. */
  invoke(payload: string): Promise<InvocationOutcome>;
  /** Without a warning, whatever it does; resolves once it has ended. */
  kill(): Promise<void>;
  hasEnded(): boolean;
};

export type Stream = "stdout" | "stderr";
export type EnvironmentOptions = {
  readonly setup: FunctionSetup;
  readonly onLine: (line: string, stream: Stream) => void;
};

/** Lambda gives a start this long before it counts as the function's own time. */
const INIT_MS = 10_000;
/** Lambda's limit for an answer. */
const MAX_RESPONSE_BYTES = 6_291_556;
/** Elsewhere the process just waits. */
const CAN_FREEZE = process.platform !== "win32";

type Child = ChildProcessByStdio<null, Readable, Readable>;

type Invocation = {
  readonly id: string;
  readonly payload: string;
  readonly settle: (outcome: InvocationOutcome) => void;
  timer: NodeJS.Timeout;
};

type State = {
  readonly setup: FunctionSetup;
  /** Of the process that asked for work and was not given any. */
  waiting: ServerResponse | undefined;
  current: Invocation | undefined;
  /** Why it will not do anything any more. */
  end: FunctionError | undefined;
};

export async function startEnvironment({ setup, onLine }: EnvironmentOptions): Promise<Environment> {
  const state: State = { setup, waiting: undefined, current: undefined, end: undefined };
  const freeze = (signal: "SIGSTOP" | "SIGCONT") => CAN_FREEZE && child.kill(signal);
  const kill = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  const handOut = () => {
    const { waiting, current } = state;
    if (waiting === undefined || current === undefined) return;
    state.waiting = undefined;
    freeze("SIGCONT");
    rearm(current, setup.timeoutMs);
    waiting.writeHead(200, toHeaders(current.id, setup)).end(current.payload);
  };
  const rearm = (invocation: Invocation, ms: number) => {
    clearTimeout(invocation.timer);
    invocation.timer = setTimeout(() => {
      state.end = toTimeout(invocation.id, setup);
      void kill();
    }, ms);
  };
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    if (request.method === "GET" && request.url === `${VERSION}/invocation/next`) {
      state.waiting = response;
      if (state.current === undefined) freeze("SIGSTOP");
      else handOut();
    } else takeReport(state, { path: request.url ?? "", body, response });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const child = startProcess(setup, server.address());
  for (const stream of ["stdout", "stderr"] as const) {
    createInterface({ input: child[stream] }).on("line", (line) => onLine(line, stream));
  }
  // Not `exit`: what the process wrote before its end has then been read as well.
  const ended = once(child, "close").then(([code, signal]) => {
    const { end = toExitError(state.current?.id, { code, signal }) } = state;
    state.end = end;
    finish(state, { ok: false, error: end });
    server.close();
    server.closeAllConnections();
  });
  return {
    pid: child.pid,
    kill,
    hasEnded: () => state.end !== undefined,
    invoke: (payload) =>
      new Promise((settle) => {
        if (state.end !== undefined) return settle({ ok: false, error: state.end });
        if (state.current !== undefined) throw new Error("an environment takes one invocation at a time");
        state.current = { id: randomUUID(), payload, settle, timer: setTimeout(() => undefined, 0) };
        rearm(state.current, INIT_MS + setup.timeoutMs);
        return handOut();
      }),
  };
}

const VERSION = "/2018-06-01/runtime";

function finish(state: State, outcome: InvocationOutcome): void {
  const { current } = state;
  if (current === undefined) return;
  clearTimeout(current.timer);
  state.current = undefined;
  current.settle(outcome);
}

type Report = { readonly path: string; readonly body: Buffer; readonly response: ServerResponse };

/** What the process posts: an answer, an error, or that it could not start. */
function takeReport(state: State, { path, body, response }: Report): void {
  const of = `${VERSION}/invocation/${state.current?.id}`;
  if (path === `${VERSION}/init/error`) state.end = readFunctionError(body.toString());
  else if (path === `${of}/error`) finish(state, { ok: false, error: readFunctionError(body.toString()) });
  else if (path === `${of}/response` && body.length > MAX_RESPONSE_BYTES) {
    const errorMessage = `Response payload size exceeded maximum allowed payload size (${MAX_RESPONSE_BYTES} bytes).`;
    finish(state, { ok: false, error: { errorType: "Function.ResponseSizeTooLarge", errorMessage } });
    return void response.writeHead(413).end("{}");
  } else if (path === `${of}/response`) finish(state, { ok: true, payload: body.toString() });
  else return void response.writeHead(404).end("{}");
  response.writeHead(202).end("{}");
}

function toHeaders(id: string, { arn, timeoutMs, traced }: FunctionSetup): Readonly<Record<string, string>> {
  return {
    "content-type": "application/json",
    "lambda-runtime-aws-request-id": id,
    "lambda-runtime-deadline-ms": String(Date.now() + timeoutMs),
    "lambda-runtime-invoked-function-arn": arn,
    "lambda-runtime-trace-id": `${toTraceId()};Parent=${randomBytes(8).toString("hex")};Sampled=${traced ? 1 : 0}`,
  };
}

/** As X-Ray writes them: version, seconds in hexadecimal, 96 random bits. */
export function toTraceId(): string {
  const seconds = Math.floor(Date.now() / 1000).toString(16);
  return `Root=1-${seconds}-${randomBytes(12).toString("hex")}`;
}

function toTimeout(id: string, { timeoutMs }: FunctionSetup): FunctionError {
  const errorMessage = `RequestId: ${id} Error: Task timed out after ${(timeoutMs / 1000).toFixed(2)} seconds`;
  return { errorType: "Sandbox.Timedout", errorMessage };
}

function toExitError(
  id: string | undefined,
  { code, signal }: { readonly code: number | null; readonly signal: string | null },
): FunctionError {
  const how = signal === null ? `exit status ${code}` : `signal: ${signal}`;
  return { errorType: "Runtime.ExitError", errorMessage: `RequestId: ${id} Error: Runtime exited with error: ${how}` };
}

function startProcess(setup: FunctionSetup, address: ReturnType<ReturnType<typeof createServer>["address"]>): Child {
  const port = typeof address === "object" ? address?.port : undefined;
  const { name, region, memoryMiB } = setup;
  // The runtime keeps a tenth for what is not on the heap.
  const heap = `--max-old-space-size=${Math.floor(memoryMiB * 0.9)}`;
  const words = ["--import", join(import.meta.dirname, "hosts.mjs"), join(import.meta.dirname, "runtime-client.mjs")];
  return spawn(process.execPath, [heap, ...words], {
    cwd: setup.taskRoot,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      TZ: ":UTC",
      LANG: "en_US.UTF-8",
      AWS_REGION: region,
      AWS_DEFAULT_REGION: region,
      AWS_EXECUTION_ENV: `AWS_Lambda_nodejs${process.versions.node.split(".")[0]}.x`,
      AWS_LAMBDA_FUNCTION_NAME: name,
      AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(memoryMiB),
      AWS_LAMBDA_INITIALIZATION_TYPE: "on-demand",
      AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${name}`,
      AWS_LAMBDA_LOG_STREAM_NAME: `[$LATEST]${randomBytes(16).toString("hex")}`,
      AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${port}`,
      LAMBDA_TASK_ROOT: setup.taskRoot,
      _HANDLER: setup.handler,
      ...(setup.traced ? { _X_AMZN_TRACE_ID: `${toTraceId()};Sampled=1` } : {}),
      ...setup.variables,
    },
  });
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}
