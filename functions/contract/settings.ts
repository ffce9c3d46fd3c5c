import * as z from "zod";
import { type Outcome, refuse, succeed, type Violation } from "./fault.ts";
import { LimitsInput } from "./limits.ts";
import { NAME_PATTERN } from "./skill.ts";
import { toViolations } from "./violations.ts";

/** The operator's choices, from the `context` of `cdk.json`; the same for the cloud and for one machine. */

export const AuthMode = z.enum(["iam", "none"]);
export type AuthMode = z.infer<typeof AuthMode>;

export const OperatorSettings = z.strictObject({
  /** Approved refs and bundles. Left out, nothing is approved. */
  tools: z.array(z.string().min(1).max(300)).max(1_000).default([]),
  /** Directory that holds the repositories, one directory each, beside `pins.json`; relative to `cdk.json`. */
  skills: z.string().min(1).default("skills"),
  /** Which of its repositories are loaded; left out, all that are pinned. */
  repositories: z.array(z.string().regex(new RegExp(`^${NAME_PATTERN}$`))).optional(),
  auth: AuthMode.default("iam"),
  artifactDays: z.int().min(1).max(3650).default(7),
  limits: LimitsInput.default({}),
  /** Declares the MCP servers that lend tools; relative to `cdk.json`. No such file: no servers. */
  mcp: z.string().min(1).default("mcp.json"),
  /** Quiet wanted after a server's notification before its list is fetched. */
  debounceSeconds: z.number().min(0.1).max(60).default(0.5),
  /** A stream of notifications without quiet is answered at least this often. */
  longestWaitSeconds: z.number().min(1).max(900).default(15),
  /** How often a list is fetched without any notification, when the server does not say how long it is good. */
  reconcileSeconds: z.int().min(60).max(86_400).default(900),
  /** Past this age a list that could not be fetched again is no longer gone by. */
  maxListAgeSeconds: z.int().min(300).max(2_592_000).default(86_400),
});
export type OperatorSettings = z.infer<typeof OperatorSettings>;

const OURS = new Set(Object.keys(OperatorSettings.shape));
/** Keys of the CDK and its libraries always hold one of these; ours never do. */
const FOREIGN_KEY = /[:/@-]/;

/** All mistakes together, each by its key. Keys that belong to the CDK are passed over, unknown words are refused. */
export function parseSettings(context: Readonly<Record<string, unknown>>): Outcome<OperatorSettings> {
  const ours = Object.entries(context).filter(([key]) => OURS.has(key) || !FOREIGN_KEY.test(key));
  const written = Object.fromEntries(ours);
  const parsed = OperatorSettings.safeParse(written);
  const misread = parsed.success ? [] : toViolations(parsed.error);
  const violations: readonly Violation[] = [...misread, ...findWaitProblems(written)];
  if (parsed.success && violations.length === 0) return succeed(parsed.data);
  const lines = violations.map(({ path, message }) => `  ${path}: ${message}`).join("\n");
  return refuse("REQUEST_INVALID", `the settings in cdk.json "context" are not valid:\n${lines}`, { violations });
}

const { debounceSeconds, longestWaitSeconds, reconcileSeconds, maxListAgeSeconds } = OperatorSettings.shape;
const Waits = z.object({ debounceSeconds, longestWaitSeconds });
const Ages = z.object({ reconcileSeconds, maxListAgeSeconds });

/** What two settings make together; nothing while one of the two is wrong by itself. */
function findWaitProblems(written: unknown): readonly Violation[] {
  const problems: Violation[] = [];
  const waits = Waits.safeParse(written);
  if (waits.success && waits.data.longestWaitSeconds < waits.data.debounceSeconds) {
    const { debounceSeconds: window, longestWaitSeconds: wait } = waits.data;
    problems.push({ path: "/longestWaitSeconds", message: `not less than debounceSeconds (${window}), got ${wait}` });
  }
  const ages = Ages.safeParse(written);
  if (ages.success && ages.data.maxListAgeSeconds <= ages.data.reconcileSeconds) {
    const { reconcileSeconds: interval, maxListAgeSeconds: age } = ages.data;
    problems.push({ path: "/maxListAgeSeconds", message: `more than reconcileSeconds (${interval}), got ${age}` });
  }
  return problems;
}
