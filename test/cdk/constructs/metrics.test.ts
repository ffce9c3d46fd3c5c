import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Construct } from "constructs";
import { describe, expect, test } from "vitest";
import { MAX_FILTERS_A_LOG_GROUP, METRICS, toNamespace } from "../../../cdk/constructs/metrics.ts";
import { FAULTS } from "../../../functions/contract/fault.ts";
import type { Log } from "../../../functions/contract/ports.ts";
import { reconcile } from "../../../functions/refresh/reconcile.ts";
import { refreshServers } from "../../../functions/refresh/refresh-servers.ts";
import { createJsonLog } from "../../../functions/wiring/json-log.ts";
import { instructions } from "../../functions/catalog/catalogs.ts";
import { asyncWorld, queued } from "../../functions/job/async-world.ts";
import { jobWorld, pdfCall } from "../../functions/job/job-context.ts";
import { refreshWorld } from "../../functions/refresh/refresh-world.ts";
import { createTestService, httpEvent } from "../../kit/http-events.ts";
import { type Properties, resourcesOf, stackMaker, toWords } from "../kit/stack-template.ts";

const makeStack = stackMaker();
const template = Template.fromStack(makeStack({ servers: { names: ["github"], secrets: [] } }));
const filters = [...resourcesOf(template, "AWS::Logs::MetricFilter").values()];

type DataPoint = {
  readonly metric: string;
  readonly value: number;
  readonly dimensions?: Readonly<Record<string, string>>;
};

const CONDITION = /^\(?\$\.(\w+) (!?=) "([^"]*)"\)?$/;

/**
 * As CloudWatch Logs reads the kinds of patterns that are used here, an asterisk at the end for any text; any other is
 * an error.
 */
function matches(pattern: string, line: Readonly<Record<string, unknown>>): boolean {
  const [, inside = ""] = /^\{ (.*) \}$/.exec(pattern) ?? [];
  return inside.split(" && ").every((condition) => {
    const [, field = "", sign, value] = CONDITION.exec(condition) ?? [];
    if (value === undefined) throw new Error(`no pattern that this test can read: ${pattern}`);
    const [start = "", ...rest] = value.split("*");
    const text = line[field];
    const equal = rest.length === 0 ? text === value : typeof text === "string" && text.startsWith(start);
    return equal === (sign === "=");
  });
}

/** What the filters of a log group make of a line, defaults included. */
function countIn(logGroup: string, text: string): readonly DataPoint[] {
  const line = JSON.parse(text);
  const own = filters.filter(({ LogGroupName }) => toWords(LogGroupName) === logGroup);
  return own.flatMap(({ FilterPattern, MetricTransformations: [transformation] }) => {
    const { MetricName: metric, MetricValue, DefaultValue, Dimensions } = transformation;
    if (!matches(FilterPattern, line)) return DefaultValue === undefined ? [] : [{ metric, value: DefaultValue }];
    const value = MetricValue.startsWith("$.") ? line[MetricValue.slice(2)] : Number(MetricValue);
    if (typeof value !== "number") return [];
    if (Dimensions === undefined) return [{ metric, value }];
    const named = Dimensions.map(({ Key, Value }: Properties) => [Key, line[Value.slice(2)]]);
    return [{ metric, value, dimensions: Object.fromEntries(named) }];
  });
}

const HTTP = "HttpLog";
const WORKER = "WorkerPathWorkerLog";
const DEAD_JOBS = "WorkerPathDeadJobsLog";
const NOTIFY = "RefreshPathNotifyLog";
const REFRESH = "RefreshPathRefreshLog";
const RECONCILE = "RefreshPathReconcileLog";

const JOB = { job_id: "j1", calls: 2, artifacts: 2, artifact_bytes: 4_321, duration_ms: 250 } as const;
const OF_JOB = [
  { metric: "Artifacts", value: 2 },
  { metric: "ArtifactBytes", value: 4_321 },
  { metric: "JobDuration", value: 250 },
];
const REQUEST = { request_id: "r1", method: "POST", path: "/v1/jobs", duration_ms: 12 } as const;
const REFRESHED = {
  cause: "notification",
  generation: 3,
  refreshed: 4,
  failed: 2,
  skipped: 1,
  servers: "github",
} as const;
const OF_REFRESH = [
  { metric: "SkillsRefreshed", value: 4 },
  { metric: "SkillsFailed", value: 2 },
  { metric: "SkillsSkipped", value: 1 },
];

const once = (metric: string) => ({ metric, value: 1 });
type Sample = readonly [
  string,
  string,
  "info" | "warn" | "error",
  string,
  Readonly<Record<string, unknown>>,
  readonly DataPoint[],
];

const SAMPLES: readonly Sample[] = [
  ["a request", HTTP, "info", "request", { ...REQUEST, status: 200 }, [once("Requests")]],
  ...Object.entries(FAULTS).map(
    ([code, { status }]): Sample => [
      `a request refused with ${code}`,
      HTTP,
      "info",
      "request",
      { ...REQUEST, status, code },
      [once("Requests"), once(`Refused/${code}`)],
    ],
  ),
  [
    "a job that succeeded while its caller waited",
    HTTP,
    "info",
    "job",
    { ...JOB, status: "succeeded", mode: "sync" },
    [once("JobsSucceeded"), ...OF_JOB],
  ],
  [
    "a job of which some failed",
    HTTP,
    "info",
    "job",
    { ...JOB, status: "partial", mode: "sync" },
    [once("JobsPartial"), ...OF_JOB],
  ],
  [
    "a job that failed",
    WORKER,
    "info",
    "job",
    { ...JOB, status: "failed", mode: "async", code: "CALL_TIMEOUT" },
    [once("JobsFailed"), ...OF_JOB],
  ],
  [
    "a job that a worker ended",
    WORKER,
    "info",
    "job",
    { ...JOB, status: "succeeded", mode: "async" },
    [once("JobsSucceeded"), ...OF_JOB],
  ],
  ["a job that is queued", HTTP, "info", "job queued", { job_id: "j1" }, [once("JobsQueued")]],
  [
    "a job that is given up",
    DEAD_JOBS,
    "error",
    "job given up",
    { job_id: "j1", code: "JOB_INTERRUPTED" },
    [once("JobsGivenUp")],
  ],
  [
    "a call that failed",
    HTTP,
    "info",
    "call",
    { job_id: "j1", call_id: "c1", ref: "create_pdf@1", code: "CALL_TIMEOUT", duration_ms: 9 },
    [],
  ],
  ["a refresh", REFRESH, "info", "refresh", REFRESHED, OF_REFRESH],
  ["a refresh that was asked for over HTTP", HTTP, "info", "refresh", REFRESHED, OF_REFRESH],
  [
    "a refused repository",
    HTTP,
    "error",
    "skill repository refused",
    { code: "REPOSITORY_REFUSED", repository: "acme" },
    [once("RepositoryRefused"), once("HttpErrors")],
  ],
  [
    "a repository refused by a worker",
    WORKER,
    "error",
    "skill repository refused",
    { code: "REPOSITORY_REFUSED" },
    [once("RepositoryRefused"), once("WorkerErrors")],
  ],
  [
    "a repository refused by a refresh",
    REFRESH,
    "error",
    "skill repository refused",
    { code: "REPOSITORY_REFUSED" },
    [once("RepositoryRefused"), once("RefreshErrors")],
  ],
  [
    "a server that does not answer",
    REFRESH,
    "warn",
    "tool list not fetched",
    { server: "github", code: "SERVER_UNAVAILABLE" },
    [once("ServerUnavailable")],
  ],
  ...[
    [WORKER, "WorkerErrors"],
    [DEAD_JOBS, "DeadJobsErrors"],
    [NOTIFY, "NotifyErrors"],
    [REFRESH, "RefreshErrors"],
  ].map(
    ([log = "", metric = ""]): Sample => [
      `a message that failed by a defect, as ${metric}`,
      log,
      "error",
      "message of a queue failed",
      { message_id: "m1", attempt: 2, code: "DEFECT" },
      [once(metric)],
    ],
  ),
  ["a batch that failed as a whole", DEAD_JOBS, "error", "batch of a queue failed", {}, [once("DeadJobsErrors")]],
  [
    "a message that failed and no error of ours",
    NOTIFY,
    "warn",
    "message of a queue failed",
    { code: "REQUEST_INVALID" },
    [],
  ],
  ["a reconcile that failed", RECONCILE, "error", "reconcile failed", { code: "DEFECT" }, [once("ReconcileErrors")]],
  [
    "the age of a list",
    RECONCILE,
    "info",
    "server",
    { server: "github", list_age_s: 42 },
    [{ metric: "ListAge", value: 42, dimensions: { Server: "github" } }],
  ],
  [
    "a list that was fetched this second",
    RECONCILE,
    "info",
    "server",
    { server: "github", list_age_s: 0 },
    [{ metric: "ListAge", value: 0, dimensions: { Server: "github" } }],
  ],
];

/** Lines that API Gateway writes, by the format of the stage. */
const ACCESS_LOG = "ApiAccessLog";
const API_FAILED = "ApiFailed";
const ANSWERED: readonly (readonly [string, string, string, number])[] = [
  ["an answer", "200", "200", 0],
  ["a mistake of the caller", "400", "400", 0],
  ["an answer of the function that something is wrong", "503", "503", 0],
  ["a caller whom API Gateway does not know", "403", "-", 0],
  ["a function that was ended", "500", "-", 1],
  ["a function that is throttled", "503", "-", 1],
  ["an answer that API Gateway cannot read", "500", "200", 1],
];

const byName = (a: DataPoint, b: DataPoint) => (a.metric < b.metric ? -1 : 1);
const WITHOUT_ZERO = ["JobDuration", "ListAge", API_FAILED];

describe("a line of the log is counted where it belongs, and as 0 by every other metric of its log:", () => {
  test.each(SAMPLES)("%s", (_, logGroup, level, message, fields, expected) => {
    const lines: string[] = [];
    createJsonLog((line) => lines.push(line))(level, message, fields);
    const points = lines.flatMap((line) => countIn(logGroup, line));
    const names = new Set(expected.map(({ metric }) => metric));
    expect(points.filter(({ metric }) => names.has(metric)).toSorted(byName)).toEqual(expected.toSorted(byName));
    const others = points.filter(({ metric }) => !names.has(metric));
    expect(others.filter(({ value }) => value !== 0)).toEqual([]);
    expect(others.filter(({ metric }) => WITHOUT_ZERO.includes(metric))).toEqual([]);
  });

  test("every metric, and no other, in one of these samples", () => {
    const counted = new Set(SAMPLES.flatMap(([, , , , , points]) => points.map(({ metric }) => metric)));
    const made = new Set(filters.map(({ MetricTransformations }) => MetricTransformations[0].MetricName));
    expect([...counted, API_FAILED].sort()).toEqual([...made].sort());
    expect([...METRICS.keys()].sort()).toEqual([...made].sort());
  });

  test.each(ANSWERED)("%s at API Gateway: status %s, of the function %s", (_, status, functionStatus, failed) => {
    const [stage] = resourcesOf(template, "AWS::ApiGatewayV2::Stage").values();
    const format: string = stage.AccessLogSettings.Format;
    const line = format
      .replace("$context.status", status)
      .replace("$context.integration.status", functionStatus)
      .replaceAll(/\$context\.[\w.]+/g, "-");
    expect(countIn(ACCESS_LOG, line)).toEqual(failed === 1 ? [once(API_FAILED)] : []);
  });

  test("lines that are no object of ours, such as Lambda's own, count as nothing", () => {
    const own = JSON.stringify({
      time: "2026-11-30T08:00:00Z",
      type: "platform.report",
      record: { status: "success" },
    });
    expect(countIn(HTTP, own).filter(({ value }) => value !== 0)).toEqual([]);
  });
});

/** Runs what logs, and adds up what the filters of a log group make of its lines; 0 is left out. */
async function countAll(
  logGroup: string,
  run: (log: Log) => Promise<unknown>,
): Promise<Readonly<Record<string, number>>> {
  const lines: string[] = [];
  await run(createJsonLog((line) => lines.push(line)));
  const sums = new Map<string, number>();
  for (const { metric, value } of lines.flatMap((line) => countIn(logGroup, line))) {
    if (value !== 0) sums.set(metric, (sums.get(metric) ?? 0) + value);
  }
  return Object.fromEntries(sums);
}

describe("what the code itself writes is counted:", () => {
  const JOB_OF_TWO = { calls: [pdfCall("We met."), pdfCall("We met again.")] };

  test("a job while its caller waits", async () => {
    const counted = await countAll(HTTP, (log) => jobWorld({ log }).run(JOB_OF_TWO));
    expect(counted).toMatchObject({ JobsSucceeded: 1, Artifacts: 2, ArtifactBytes: expect.any(Number) });
  });

  test("a job that is queued, and ended by a worker", async () => {
    const world = asyncWorld();
    expect(await countAll(HTTP, (log) => world.submit(JOB_OF_TWO, undefined, { ...world.queueContext, log }))).toEqual({
      JobsQueued: 1,
    });
    const taken = await countAll(WORKER, (log) => world.take(world.sent.at(-1)?.body ?? "", { log }));
    expect(taken).toMatchObject({ JobsSucceeded: 1, Artifacts: 2 });
  });

  test("a job that is given up, and then no error of the function that gives it up", async () => {
    const counted = await countAll(DEAD_JOBS, async (log) => {
      const world = asyncWorld({ log });
      const { body } = await queued(world, JOB_OF_TWO);
      await world.giveUp(body);
    });
    expect(counted).toEqual({ JobsGivenUp: 1 });
  });

  test("a request, and why it was refused", async () => {
    const service = createTestService();
    await service.send(httpEvent({ path: "/v1/nothing", method: "GET" }));
    const counted = await countAll(HTTP, async (log) => {
      for (const { message, fields } of service.logged) if (message === "request") log("info", message, fields);
    });
    expect(counted).toEqual({ Requests: 1, "Refused/ROUTE_NOT_FOUND": 1 });
  });

  test("a refresh, and how old the list is after it", async () => {
    const world = refreshWorld(["github"], { files: instructions("acme/mail", { tools: ["github/send"] }) });
    const refreshed = await countAll(REFRESH, (log) =>
      refreshServers({ servers: ["github"], cause: "schedule", dryRun: false }, { ...world.context, log }),
    );
    expect(refreshed).toEqual({ SkillsFailed: 1 });
    world.clock.advance(42_000);
    const context = {
      servers: world.context.installed.servers,
      store: world.store,
      notifications: { send: async () => undefined },
      clock: world.clock.now,
      due: { intervalMs: 900_000, maxListAgeMs: 86_400_000 },
    };
    expect(await countAll(RECONCILE, (log) => reconcile({ ...context, log }))).toEqual({ ListAge: 42 });
  });
});

describe("the filters", () => {
  test("say 0 where they count nothing, except where that would be a lie or is not allowed", () => {
    for (const { MetricTransformations } of filters) {
      expect(MetricTransformations).toHaveLength(1);
      const [{ MetricName, DefaultValue }] = MetricTransformations;
      expect({ MetricName, DefaultValue }).toEqual({
        MetricName,
        DefaultValue: WITHOUT_ZERO.includes(MetricName) ? undefined : 0,
      });
    }
  });

  test("are no more than a log group takes", () => {
    const groups = Map.groupBy(filters, ({ LogGroupName }) => toWords(LogGroupName));
    expect(groups.size).toBe(7);
    for (const { length } of groups.values()) expect(length).toBeLessThanOrEqual(MAX_FILTERS_A_LOG_GROUP);
  });

  test("have names that CloudWatch takes", () => {
    for (const { MetricTransformations } of filters) {
      expect(MetricTransformations[0].MetricName).toMatch(/^[^:*$]{1,255}$/);
      expect(MetricTransformations[0].MetricNamespace).toMatch(/^[A-Za-z0-9._/#-]{1,255}$/);
    }
  });
});

describe("the namespace", () => {
  test("is one for a stack", () => {
    const namespaces = filters.map(({ MetricTransformations }) => MetricTransformations[0].MetricNamespace);
    expect(new Set(namespaces)).toEqual(new Set(["skillbroker/SkillBroker"]));
  });

  test("is another one for each stack and for each construct in a stack", () => {
    const stacks = ["a-b", "ab"].map((stackName) => new Stack(new App(), "Stack", { stackName }));
    const constructs = stacks.flatMap((stack) => [
      stack,
      ...["One", "Two", "A B"].map((id) => new Construct(stack, id)),
    ]);
    const namespaces = constructs.map(toNamespace);
    expect(new Set(namespaces).size).toBe(constructs.length);
    expect(namespaces).toContain("skillbroker/a-b");
    for (const namespace of namespaces) expect(namespace).toMatch(/^skillbroker\/[A-Za-z0-9-]{1,100}$/);
  });
});
