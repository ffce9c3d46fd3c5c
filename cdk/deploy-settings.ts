import { loadPolicy } from "../functions/broker/operator-policy.ts";
import type { HttpEnv } from "../functions/contract/env.ts";
import { Fault, type Outcome, refuse, type Violation } from "../functions/contract/fault.ts";
import { LimitsInput, operatorLimits } from "../functions/contract/limits.ts";
import { OperatorSettings, parseSettings } from "../functions/contract/settings.ts";
import { MAX_JOB_TIMEOUT_MS } from "./timeouts.ts";

/** The operator's settings, and what a deployed function cannot do with settings that one machine would take. */

/** Lambda takes 4 KiB for all names and values together. */
const MAX_ENVIRONMENT_BYTES = 4096;
/** A bucket's name is known only while deploying. */
const MAX_BUCKET_NAME_BYTES = 63;

/** Every mistake together, in the message as a list and in the violations by JSON Pointer. */
export function parseDeploySettings(context: Readonly<Record<string, unknown>>): Outcome<OperatorSettings> {
  const parsed = parseSettings(context);
  const read = parsed.ok ? [] : parsed.fault.violations;
  const violations = [...read, ...findApprovalProblems(context.tools), ...findTimeoutProblems(context.limits)];
  if (parsed.ok) violations.push(...findEnvironmentProblems(parsed.value));
  if (parsed.ok && violations.length === 0) return parsed;
  const lines = violations.map(({ path, message }) => `  ${path}: ${message}`).join("\n");
  return refuse("REQUEST_INVALID", `the settings in cdk.json "context" are not valid:\n${lines}`, { violations });
}

/** The environment that the settings make, but for the bucket. */
export function toEnvironment({ tools, limits, auth, artifactDays }: OperatorSettings) {
  return {
    APPROVED_TOOLS: JSON.stringify(tools),
    LIMITS: JSON.stringify(limits),
    AUTH: auth,
    ARTIFACT_DAYS: String(artifactDays),
  } satisfies Record<Exclude<keyof HttpEnv, "BUCKET_NAME">, string>;
}

/** Read by the function's own code: an approval that it cannot read would stop it at every cold start. */
function findApprovalProblems(tools: unknown): readonly Violation[] {
  const parsed = OperatorSettings.shape.tools.safeParse(tools);
  if (!parsed.success) return [];
  try {
    loadPolicy(parsed.data, []);
    return [];
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return [{ path: "/tools", message: error.message }];
  }
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

function findEnvironmentProblems(settings: OperatorSettings): readonly Violation[] {
  const entries = Object.entries(toEnvironment(settings)).flat().join("");
  const bytes = Buffer.byteLength(entries) + "BUCKET_NAME".length + MAX_BUCKET_NAME_BYTES;
  if (bytes <= MAX_ENVIRONMENT_BYTES) return [];
  const message = `make ${bytes} bytes of environment with the limits, a function takes ${MAX_ENVIRONMENT_BYTES}`;
  return [{ path: "/tools", message }];
}
