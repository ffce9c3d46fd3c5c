import { Names } from "aws-cdk-lib";
import { Unit } from "aws-cdk-lib/aws-cloudwatch";
import { FilterPattern, type ILogGroup, type JsonPattern, MetricFilter } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { FAULTS } from "../../functions/contract/fault.ts";
import { FUNCTION_NAMES, type FunctionName } from "../entry-points.ts";

/**
 * What is counted, and by which lines of the logs. CloudWatch counts while it takes the lines in, so that no function
 * spends a moment on it. A line is one JSON object; its `message` says which kind it is.
 */

export type LogMetric = {
  readonly name: string;
  /** Field -> value that a line has when it is counted; an asterisk stands for any text. */
  readonly lines: Readonly<Record<string, string>>;
  /** Field -> value that a line does not have when it is counted. */
  readonly unless?: Readonly<Record<string, string>>;
  /** Field that is added up or averaged; left out, lines are counted. */
  readonly value?: string;
  readonly unit: Unit;
  /**
   * Whether each line that is not counted says 0, so that silence shows as a line at zero. Not for times: their
   * percentiles would sink to it.
   */
  readonly zero: boolean;
  /** Dimension -> field that names it; CloudWatch takes no zero beside one. */
  readonly dimensions?: Readonly<Record<string, string>>;
};

/** CloudWatch Logs takes so many filters a log group. */
export const MAX_FILTERS_A_LOG_GROUP = 100;

/** Percentiles of it are shown, so a job that was not there must not count as one that took no time. */
const JOB_DURATION: LogMetric = {
  name: "JobDuration",
  lines: { message: "job" },
  value: "duration_ms",
  unit: Unit.MILLISECONDS,
  zero: false,
};

const REFUSAL_CODES = Object.keys(FAULTS);

const REQUESTS: readonly LogMetric[] = [
  countLines("Requests", { message: "request" }),
  ...REFUSAL_CODES.map((code) => countLines(toRefusalName(code), { message: "request", code })),
];

const JOBS: readonly LogMetric[] = [
  countLines("JobsSucceeded", { message: "job", status: "succeeded" }),
  countLines("JobsPartial", { message: "job", status: "partial" }),
  countLines("JobsFailed", { message: "job", status: "failed" }),
  addUp("Artifacts", { message: "job" }, { value: "artifacts", unit: Unit.COUNT }),
  addUp("ArtifactBytes", { message: "job" }, { value: "artifact_bytes", unit: Unit.BYTES }),
  JOB_DURATION,
];

const REFRESHES: readonly LogMetric[] = [
  addUp("SkillsRefreshed", { message: "refresh" }, { value: "refreshed", unit: Unit.COUNT }),
  addUp("SkillsFailed", { message: "refresh" }, { value: "failed", unit: Unit.COUNT }),
  addUp("SkillsSkipped", { message: "refresh" }, { value: "skipped", unit: Unit.COUNT }),
];

/** At error level: a request that was answered with this code counts among the refusals. */
const REFUSED_REPOSITORIES = countLines("RepositoryRefused", { level: "error", code: "REPOSITORY_REFUSED" });
const UNAVAILABLE_SERVERS = countLines("ServerUnavailable", { level: "warn", code: "SERVER_UNAVAILABLE" });

/** Logged as an error, though the function did just what it is there for; it has a metric of its own. */
const GIVEN_UP = "job given up";

const LIST_AGE: LogMetric = {
  name: "ListAge",
  lines: { message: "server" },
  value: "list_age_s",
  unit: Unit.SECONDS,
  zero: false,
  dimensions: { Server: "server" },
};

/**
 * Answers of API Gateway that are none of the function's own, counted in the access log: there `function_status` is
 * what the code of the function answered with. Nothing is counted while all is well, and nothing has to be paid.
 */
export const API_FAILED: LogMetric = {
  ...countLines("ApiFailed", { status: "5*" }),
  unless: { function_status: "5*" },
  zero: false,
};

/** What is counted in the log of each function. A metric that several of them count is the sum over their logs. */
export const COUNTED: Readonly<Record<FunctionName, readonly LogMetric[]>> = {
  http: [
    toErrors("http"),
    ...REQUESTS,
    ...JOBS,
    countLines("JobsQueued", { message: "job queued" }),
    ...REFRESHES,
    REFUSED_REPOSITORIES,
  ],
  worker: [toErrors("worker"), ...JOBS, REFUSED_REPOSITORIES],
  "dead-jobs": [
    { ...toErrors("dead-jobs"), unless: { message: GIVEN_UP } },
    countLines("JobsGivenUp", { message: GIVEN_UP }),
  ],
  notify: [toErrors("notify")],
  refresh: [toErrors("refresh"), ...REFRESHES, REFUSED_REPOSITORIES, UNAVAILABLE_SERVERS],
  reconcile: [toErrors("reconcile"), LIST_AGE],
};

/** The refusals by their code: what the dashboard and an operator look for. */
export const REFUSAL_METRICS = REFUSAL_CODES.map((code) => ({ code, name: toRefusalName(code) }));

function toRefusalName(code: string): string {
  return `Refused/${code}`;
}

/** `dead-jobs` -> `DeadJobs`, as constructs and metrics are called. */
export function toPascalCase(name: FunctionName): string {
  return name.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function toErrorsName(name: FunctionName): string {
  return `${toPascalCase(name)}Errors`;
}

function toErrors(name: FunctionName): LogMetric {
  return countLines(toErrorsName(name), { level: "error" });
}

function countLines(name: string, lines: LogMetric["lines"]): LogMetric {
  return { name, lines, unit: Unit.COUNT, zero: true };
}

function addUp(name: string, lines: LogMetric["lines"], what: Pick<LogMetric, "unit"> & { value: string }): LogMetric {
  return { name, lines, ...what, zero: true };
}

/** Unlike that of every other service in the account: the name of the stack and of the construct in it. */
export function toNamespace(scope: Construct): string {
  return `skillbroker/${toInstanceName(scope)}`;
}

/** The name of the stack, and after it that of the construct where it is not the stack itself. */
export function toInstanceName(scope: Construct): string {
  return Names.uniqueResourceName(scope, { maxLength: 100, separator: "-", allowedSpecialCharacters: "-" });
}

export type Counting = { readonly metric: LogMetric; readonly namespace: string };

export function countInLog(scope: Construct, logGroup: ILogGroup, { metric, namespace }: Counting): void {
  const { name, value, unit, zero, dimensions } = metric;
  new MetricFilter(scope, name.replace("/", ""), {
    logGroup,
    metricNamespace: namespace,
    metricName: name,
    filterPattern: toPattern(metric),
    metricValue: value === undefined ? "1" : `$.${value}`,
    unit,
    ...(zero ? { defaultValue: 0 } : {}),
    ...(dimensions === undefined ? {} : { dimensions: toSelectors(dimensions) }),
  });
}

function toPattern({ lines, unless = {} }: LogMetric): JsonPattern {
  const compare = (fields: LogMetric["lines"], sign: "=" | "!=") =>
    Object.entries(fields).map(([field, value]) => FilterPattern.stringValue(`$.${field}`, sign, value));
  return FilterPattern.all(...compare(lines, "="), ...compare(unless, "!="));
}

function toSelectors(dimensions: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(dimensions).map(([name, field]) => [name, `$.${field}`]));
}

/** Every metric once, by its name. */
export const METRICS: ReadonlyMap<string, LogMetric> = new Map(
  [...FUNCTION_NAMES.flatMap((name) => COUNTED[name]), API_FAILED].map((metric) => [metric.name, metric] as const),
);
