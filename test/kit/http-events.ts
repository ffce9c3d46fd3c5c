import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Context } from "aws-lambda";
import { expect } from "vitest";
import { createHttpHandler, type HttpHandler } from "../../functions/aws/http/handler.ts";
import type { HttpEvent } from "../../functions/aws/http/request.ts";
import type { HttpResponse } from "../../functions/aws/http/response.ts";
import type { AuthMode } from "../../functions/contract/auth.ts";
import type { FaultCode } from "../../functions/contract/fault.ts";
import type { LimitsInput } from "../../functions/contract/limits.ts";
import type { Log, ObjectStore, QueueMessage, ReceivedMessage } from "../../functions/contract/ports.ts";
import { readPinsFile } from "../../functions/repository/pins-file.ts";
import { createApi } from "../../functions/wiring/create-api.ts";
import { createWorker } from "../../functions/wiring/create-worker.ts";
import { installProject } from "../../functions/wiring/install-project.ts";
import { createFakeToolSource, type FakeToolSource } from "./fake-tool-source.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";
import { createMemoryObjectStore, type MemoryObjectStore } from "./memory-object-store.ts";

/** Events as API Gateway shapes them (payload 2.0), and the whole handler over a memory store and a clock by hand. */

export const SKILLS_ROOT = join(import.meta.dirname, "..", "..", "skills");
export const ALICE = "arn:aws:iam::111122223333:user/alice";
export const BOB = "arn:aws:iam::111122223333:user/bob";
export const NOON = Date.parse("2026-11-30T12:00:00Z");

export type EventInput = {
  readonly method?: string;
  readonly path?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly base64?: boolean;
  /** Undefined for a request that nobody signed. */
  readonly userArn?: string | undefined;
  /** Claims of a token that the gateway verified; then nobody signed. */
  readonly claims?: Readonly<Record<string, string>>;
};

export function httpEvent(input: EventInput): HttpEvent {
  const { method = "GET", path = "/", query, headers = {}, body, base64 = false } = input;
  const userArn = "userArn" in input ? input.userArn : ALICE;
  const authorizer = input.claims === undefined ? toIam(userArn) : toJwt(input.claims);
  const context = {
    accountId: "111122223333",
    apiId: "api",
    ...authorizer,
    domainName: "api.execute-api.eu-central-1.amazonaws.com",
    domainPrefix: "api",
    http: { method, path, protocol: "HTTP/1.1", sourceIp: "192.0.2.1", userAgent: "test" },
    requestId: "request-1",
    routeKey: "$default",
    stage: "$default",
    time: "30/Nov/2026:12:00:00 +0000",
    timeEpoch: NOON,
  };
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: path,
    rawQueryString: new URLSearchParams(query).toString(),
    headers: { ...headers },
    requestContext: context,
    isBase64Encoded: base64,
    ...(query === undefined ? {} : { queryStringParameters: { ...query } }),
    ...(body === undefined ? {} : { body }),
  };
}

function toIam(userArn: string | undefined) {
  return userArn === undefined ? {} : { authorizer: { iam: { userArn } } };
}

/** `scopes` is null unless the route wants some; nothing of ours reads it. */
function toJwt(claims: Readonly<Record<string, string>>) {
  return { authorizer: { jwt: { claims: { ...claims }, scopes: null } } };
}

/** A job posted as JSON; `text` in place of `job` for what is not JSON. */
export function jobEvent(job: unknown, input: EventInput = {}): HttpEvent {
  const headers = { "content-type": "application/json", ...input.headers };
  return httpEvent({ method: "POST", path: "/v1/jobs", body: JSON.stringify(job), ...input, headers });
}

export function lambdaContext(requestId = "invocation-1"): Context {
  return {
    awsRequestId: requestId,
    callbackWaitsForEmptyEventLoop: false,
    functionName: "http",
    functionVersion: "1",
    invokedFunctionArn: "arn:aws:lambda:eu-central-1:111122223333:function:http",
    logGroupName: "group",
    logStreamName: "stream",
    memoryLimitInMB: "1024",
    getRemainingTimeInMillis: () => 30_000,
    done: () => undefined,
    fail: () => undefined,
    succeed: () => undefined,
  };
}

export type Logged = { readonly level: string; readonly message: string; readonly fields: Record<string, unknown> };

export type TestService = {
  readonly handler: HttpHandler;
  readonly store: MemoryObjectStore;
  readonly clock: ManualClock;
  readonly logged: readonly Logged[];
  /** The servers that `mcp` declares. */
  readonly toolSource: FakeToolSource;
  /** What was sent to the notifications queue. */
  readonly queued: readonly QueueMessage[];
  /** What was sent to the jobs queue. */
  readonly queuedJobs: readonly QueueMessage[];
  /** Lets a worker take all that was sent to the jobs queue so far. */
  readonly workOff: () => Promise<void>;
  /** The event goes through JSON, as the runtime delivers it, and so may be of any shape. */
  readonly send: (event: unknown) => Promise<HttpResponse>;
};

export type TestApiOptions = {
  readonly approvals?: readonly string[];
  readonly limits?: LimitsInput;
  readonly skillsRoot?: string;
  /** What `mcp.json` holds. */
  readonly mcp?: unknown;
  readonly auth?: AuthMode;
  readonly maxBodyBytes?: number;
  readonly artifactDays?: number;
  readonly wrapStore?: (store: ObjectStore) => ObjectStore;
};

export function createTestService(options: TestApiOptions = {}): TestService {
  const clock = createManualClock(NOON);
  const store = createMemoryObjectStore({ clock: clock.now });
  const logged: Logged[] = [];
  const log: Log = (level, message, fields = {}) => logged.push({ level, message, fields: { ...fields } });
  const installed = installProject({
    skillsRoot: options.skillsRoot ?? SKILLS_ROOT,
    pins: () => readPinsFile(options.skillsRoot ?? SKILLS_ROOT),
    approvals: options.approvals ?? ["local"],
    mcp: options.mcp ?? { mcpServers: {} },
    log,
  });
  const toolSource = createFakeToolSource(installed.servers.map(({ name }) => name));
  const queued: QueueMessage[] = [];
  const queuedJobs: QueueMessage[] = [];
  const running = {
    installed,
    store: options.wrapStore?.(store) ?? store,
    toolSource,
    clock: clock.now,
    log,
    limits: options.limits ?? {},
    asyncJobSeconds: 300,
    maxListAgeMs: 24 * 3600_000,
  };
  const work = createWorker({ ...running, leaseMs: 360_000, redeliveryIsDeath: false });
  const api = createApi({
    ...running,
    notifications: { send: async (message) => void queued.push(message) },
    jobs: { send: async (message) => void queuedJobs.push(message) },
    randomBytes,
    artifactDays: options.artifactDays ?? 7,
    listTimeoutMs: 5_000,
    refreshTimeoutMs: 10_000,
    publishTimeoutMs: 5_000,
    listedAtOnce: 4,
  });
  const { auth = "iam", maxBodyBytes = 100_000 } = options;
  const handler = createHttpHandler({
    api,
    auth,
    maxBodyBytes,
    version: "0.0.0",
    log,
    clock: clock.now,
    answerMs: 1_000,
  });
  return {
    handler,
    store,
    clock,
    logged,
    toolSource,
    queued,
    queuedJobs,
    workOff: async () => {
      const failed = await work(queuedJobs.splice(0).map(({ body }, index) => toReceived(body, `m${index + 1}`)));
      expect([...failed]).toEqual([]);
    },
    send: (event) => handler(JSON.parse(JSON.stringify(event)), lambdaContext()),
  };
}

/** As the queue hands it out for the first time. */
export function toReceived(body: string, id: string): ReceivedMessage {
  return { id, receipt: id, body, sentAt: NOON, firstReceivedAt: NOON, receiveCount: 1 };
}

export function jsonOf(response: HttpResponse): Record<string, unknown> {
  const parsed: unknown = JSON.parse(response.body ?? "null");
  expect(parsed).toBeTypeOf("object");
  return Object.fromEntries(Object.entries(parsed ?? {}));
}

/** Asserts that the response is a complete problem document of this code, and gives it back. */
export function expectProblem(response: HttpResponse, status: number, code: FaultCode): Record<string, unknown> {
  const problem = jsonOf(response);
  expect({ status: response.statusCode, code: problem.code }).toEqual({ status, code });
  expect(response.headers).toMatchObject({ "content-type": "application/problem+json" });
  expect(problem).toMatchObject({ type: "about:blank", status, request_id: response.headers?.["x-request-id"] });
  expect(problem.title).toBeTypeOf("string");
  expect(problem.detail).toMatch(/\S/);
  expect(response.body).not.toMatch(/\n {4}at |node_modules|\/work\/|\.ts\b/);
  return problem;
}

/** Paths of the listed violations. */
export function violationPaths(problem: Record<string, unknown>): readonly unknown[] {
  const { errors } = problem;
  return Array.isArray(errors) ? errors.map((each: { path?: unknown }) => each.path) : [];
}
