import { loadPolicy } from "../functions/broker/operator-policy.ts";
import type {
  DeadJobsEnv,
  HttpEnv,
  NotifyEnv,
  ReconcileEnv,
  RefreshEnv,
  WorkerEnv,
} from "../functions/contract/env.ts";
import { Fault, type Outcome, refuse, type Violation } from "../functions/contract/fault.ts";
import { LimitsInput, operatorLimits } from "../functions/contract/limits.ts";
import { parseMcpToolName } from "../functions/contract/offered-tool.ts";
import { OperatorSettings, parseSettings } from "../functions/contract/settings.ts";
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
 * Every mistake together, in the message as a list and in the violations by JSON Pointer. An approval of what is not
 * there is one; without `approvable`, approvals are only read.
 */
export function parseDeploySettings(
  context: Readonly<Record<string, unknown>>,
  approvable?: Approvable,
): Outcome<OperatorSettings> {
  const parsed = parseSettings(context);
  const read = parsed.ok ? [] : parsed.fault.violations;
  const approvals = findApprovalProblems(context.tools, approvable);
  const violations = [...read, ...approvals, ...findTimeoutProblems(context.limits)];
  if (parsed.ok && violations.length === 0) return parsed;
  const lines = violations.map(({ path, message }) => `  ${path}: ${message}`).join("\n");
  return refuse("REQUEST_INVALID", `the settings in cdk.json "context" are not valid:\n${lines}`, { violations });
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

function findTimeoutProblems(limits: unknown): readonly Violation[] {
  const parsed = LimitsInput.safeParse(limits ?? {});
  if (!parsed.success) return [];
  const { call_timeout_ms: call, job_timeout_ms: job } = operatorLimits(parsed.data);
  const violations: Violation[] = [];
  if (job > MAX_JOB_TIMEOUT_MS) {
    const message = `at most ${MAX_JOB_TIMEOUT_MS}, got ${job}: an answer over HTTP must come within 30 s`;
    violations.push({ path: "/limits/job_timeout_ms", message });
  }
  if (call >= job) {
    violations.push({ path: "/limits/call_timeout_ms", message: `less than job_timeout_ms (${job}), got ${call}` });
  }
  return violations;
}
