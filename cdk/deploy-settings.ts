import * as z from "zod";
import { loadPolicy } from "../functions/broker/operator-policy.ts";
import { JwtAuth } from "../functions/contract/auth.ts";
import type {
  DeadJobsEnv,
  HttpEnv,
  NotifyEnv,
  ReconcileEnv,
  RefreshEnv,
  WorkerEnv,
} from "../functions/contract/env.ts";
import { Fault, type Violation } from "../functions/contract/fault.ts";
import { LimitsInput, operatorLimits } from "../functions/contract/limits.ts";
import { parseMcpToolName } from "../functions/contract/offered-tool.ts";
import { OperatorSettings, type ReadSettings, readSettings } from "../functions/contract/settings.ts";
import { isReachable } from "./reachable.ts";
import { MAX_JOB_TIMEOUT_MS } from "./timeouts.ts";

/** The operator's settings, and what a deployed function cannot do with settings that one machine would take. */

/** What there is to approve. */
export type Approvable = {
  /** What can be called beside tools of MCP servers. */
  readonly refs: readonly string[];
  /** Names of the declared MCP servers; what they lend is known only when they are asked. */
  readonly servers: readonly string[];
};

/**
 * Every mistake together, by JSON Pointer. An approval of what is not there is one; without `approvable`, approvals are
 * only read.
 */
export function readDeploySettings(written: Readonly<Record<string, unknown>>, approvable?: Approvable): ReadSettings {
  const read = readSettings(written);
  const violations = [
    ...read.violations,
    ...findApprovalProblems(written.tools, approvable),
    ...findIssuerProblem(written.auth),
    ...findTagProblem(written),
    ...findLimitProblems(written),
  ];
  return { settings: violations.length === 0 ? read.settings : undefined, violations };
}

/** Known only while deploying; the stack adds them. */
type Place = "BUCKET_NAME" | "JOBS_QUEUE_URL" | "NOTIFICATIONS_QUEUE_URL" | "REFRESH_QUEUE_URL";
type Chosen<Env> = Readonly<Record<Exclude<keyof Env, Place>, string>>;
export type Environments = {
  readonly http: Chosen<HttpEnv>;
  readonly worker: Chosen<WorkerEnv>;
  readonly deadJobs: Chosen<DeadJobsEnv>;
  readonly notify: Chosen<NotifyEnv>;
  readonly refresh: Chosen<RefreshEnv>;
  readonly reconcile: Chosen<ReconcileEnv>;
};

/** What the settings say to each function. */
export function toEnvironments(settings: OperatorSettings): Environments {
  const DEBOUNCE_SECONDS = String(settings.debounceSeconds);
  const MAX_LIST_AGE_SECONDS = String(settings.maxListAgeSeconds);
  const LIMITS = JSON.stringify(settings.limits);
  const ASYNC_JOB_SECONDS = String(settings.asyncJobSeconds);
  return {
    http: {
      LIMITS,
      ASYNC_JOB_SECONDS,
      AUTH: JSON.stringify(settings.auth),
      ARTIFACT_DAYS: String(settings.artifactDays),
      MAX_LIST_AGE_SECONDS,
    },
    worker: { LIMITS, ASYNC_JOB_SECONDS, MAX_LIST_AGE_SECONDS },
    deadJobs: {},
    notify: { DEBOUNCE_SECONDS },
    refresh: {
      DEBOUNCE_SECONDS,
      LONGEST_WAIT_SECONDS: String(settings.longestWaitSeconds),
      MAX_LIST_AGE_SECONDS,
    },
    reconcile: { RECONCILE_SECONDS: String(settings.reconcileSeconds), MAX_LIST_AGE_SECONDS },
  };
}

function findApprovalProblems(tools: unknown, approvable: Approvable | undefined): readonly Violation[] {
  const parsed = OperatorSettings.shape.tools.safeParse(tools);
  if (!parsed.success) return [];
  return parsed.data.flatMap((approval, index) => {
    const message = findApprovalProblem(approval, approvable);
    return message === undefined ? [] : [{ path: `/tools/${index}`, message }];
  });
}

/** Read by the function's own code: an approval that it cannot read would stop it at every cold start. */
function findApprovalProblem(approval: string, approvable: Approvable | undefined): string | undefined {
  try {
    const { approved } = loadPolicy([approval], []);
    const [problem] = [...approved].flatMap((ref) => (approvable && findUnknown(ref, approvable)) ?? []);
    return problem;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return error.message;
  }
}

/** An approval of nothing approves nothing; whoever misspelt one believes otherwise. */
function findUnknown(ref: string, { refs, servers }: Approvable): string | undefined {
  const lent = parseMcpToolName(ref);
  if (lent !== undefined) {
    if (servers.includes(lent.server)) return undefined;
    return `${ref}: no MCP server "${lent.server}" is declared; there ${listed(servers)}`;
  }
  if (refs.includes(ref)) return undefined;
  const others = refs.filter((each) => each.split("@")[0] === ref.split("@")[0]);
  return `${ref} is in none of the repositories; there ${listed(others.length > 0 ? others : refs)}`;
}

const MAX_LISTED = 20;

function listed(names: readonly string[]): string {
  if (names.length === 0) return "is none";
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : "";
  return `${names.length === 1 ? "is" : "are"} ${names.slice(0, MAX_LISTED).join(", ")}${more}`;
}

/** API Gateway fetches the keys of the issuer over the internet. */
function findIssuerProblem(auth: unknown): readonly Violation[] {
  const parsed = WithIssuer.safeParse(auth);
  if (!parsed.success || isReachable(new URL(parsed.data.issuer).hostname)) return [];
  const message = "API Gateway cannot fetch its keys there; an issuer that the internet reaches expected";
  return [{ path: "/auth/issuer", message }];
}

const WithIssuer = JwtAuth.pick({ issuer: true }).strip();

/** To empty a bucket that goes with the stack, the CDK marks it with a tag of its own; a bucket takes fifty. */
const MAX_TAGS_WITH_MARK = 49;

function findTagProblem({ tags, dataAtRemoval }: Readonly<Record<string, unknown>>): readonly Violation[] {
  const parsed = OperatorSettings.shape.tags.safeParse(tags);
  if (!parsed.success || dataAtRemoval !== "delete" || Object.keys(parsed.data).length <= MAX_TAGS_WITH_MARK) return [];
  return [{ path: "/tags", message: `at most ${MAX_TAGS_WITH_MARK} where the data goes with the stack` }];
}

/**
 * A report is a text inside the JSON of an answer, which may have 6 MB: written twice, up to twice as long. The files
 * of a job are in the memory of the function three times, twice of that as text, until the last call has ended.
 */
export const MOST_BYTES = {
  max_output_bytes: 3 * 1024 * 1024,
  max_artifact_bytes: 128 * 1024 * 1024,
  max_total_artifact_bytes: 128 * 1024 * 1024,
} as const;

/** Of the limits that can be read: one that cannot does not hide what is wrong with the others. */
function findLimitProblems(written: Readonly<Record<string, unknown>>): readonly Violation[] {
  const limits = operatorLimits(readableLimits(written.limits));
  const asyncJob = OperatorSettings.shape.asyncJobSeconds.safeParse(written.asyncJobSeconds).data ?? 0;
  const longestJob = Math.max(limits.job_timeout_ms, asyncJob * 1000);
  const violations: Violation[] = [];
  const add = (name: keyof typeof limits, message: string) =>
    violations.push({ path: `/limits/${name}`, message: `${message}, got ${limits[name]}` });
  if (limits.job_timeout_ms > MAX_JOB_TIMEOUT_MS) {
    const message = `at most ${MAX_JOB_TIMEOUT_MS}, got ${limits.job_timeout_ms}: an answer over HTTP must come within 30 s`;
    violations.push({ path: "/limits/job_timeout_ms", message });
  }
  // A call of a shorter job ends with its job.
  if (limits.call_timeout_ms >= longestJob) add("call_timeout_ms", `less than the longest job has (${longestJob})`);
  for (const name of BOUNDED) if (limits[name] > MOST_BYTES[name]) add(name, `at most ${MOST_BYTES[name]}`);
  if (limits.max_artifact_bytes > limits.max_total_artifact_bytes) {
    add("max_artifact_bytes", `not more than max_total_artifact_bytes (${limits.max_total_artifact_bytes})`);
  }
  return violations;
}

const BOUNDED = ["max_output_bytes", "max_artifact_bytes", "max_total_artifact_bytes"] as const;

function readableLimits(written: unknown): LimitsInput {
  const entries = Object.entries(AnyFields.safeParse(written).data ?? {});
  const readable = entries.filter(([name, value]) => LimitsInput.safeParse({ [name]: value }).success);
  return LimitsInput.parse(Object.fromEntries(readable));
}

const AnyFields = z.record(z.string(), z.unknown());
