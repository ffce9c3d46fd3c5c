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
});
export type OperatorSettings = z.infer<typeof OperatorSettings>;

const OURS = new Set(Object.keys(OperatorSettings.shape));
/** Keys of the CDK and its libraries always hold one of these; ours never do. */
const FOREIGN_KEY = /[:/@-]/;

/** All mistakes together, each by its key. Keys that belong to the CDK are passed over, unknown words are refused. */
export function parseSettings(context: Readonly<Record<string, unknown>>): Outcome<OperatorSettings> {
  const ours = Object.entries(context).filter(([key]) => OURS.has(key) || !FOREIGN_KEY.test(key));
  const parsed = OperatorSettings.safeParse(Object.fromEntries(ours));
  if (parsed.success) return succeed(parsed.data);
  const violations: readonly Violation[] = toViolations(parsed.error);
  const lines = violations.map(({ path, message }) => `  ${path}: ${message}`).join("\n");
  return refuse("REQUEST_INVALID", `the settings in cdk.json "context" are not valid:\n${lines}`, { violations });
}
