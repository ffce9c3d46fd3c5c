import * as z from "zod";
import { AuthMode } from "./auth.ts";
import { type Outcome, refuse, succeed, type Violation } from "./fault.ts";
import { LimitsInput } from "./limits.ts";
import { NAME_PATTERN } from "./skill.ts";
import { TIME_SETTINGS } from "./time-settings.ts";
import { toViolations } from "./violations.ts";

/** The operator's choices, from the `context` of `cdk.json`; the same for the cloud and for one machine. */

/** The days that CloudWatch keeps logs for. */
const LOG_DAYS = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

/** The characters that every service takes, IAM the fewest; names that begin with `aws:` are AWS's own. */
const TAG_TEXT = /^[\p{L}\p{Z}\p{N}_.:/=+@-]*$/u;
const TagName = z
  .string()
  .min(1)
  .max(128)
  .regex(TAG_TEXT, "the name of a tag has letters, digits, blanks and _ . : / = + - @")
  .refine((name) => !/^aws:/i.test(name), 'names that begin with "aws:" are AWS\'s own');
const TagValue = z
  .string()
  .max(256)
  .regex(TAG_TEXT, "the value of a tag has letters, digits, blanks and _ . : / = + - @");
/** What a resource takes at most. */
const MAX_TAGS = 50;

const AwsTags = z
  .record(TagName, TagValue)
  .refine((tags) => Object.keys(tags).length <= MAX_TAGS, `at most ${MAX_TAGS} tags expected`)
  .refine(
    (tags) => new Set(Object.keys(tags).map((name) => name.toLowerCase())).size === Object.keys(tags).length,
    "names that differ by case alone are one name to IAM; expected once",
  );

export const OperatorSettings = z.strictObject({
  /** Approved refs and bundles. Left out, nothing is approved. */
  tools: z.array(z.string().min(1).max(300)).max(1_000).default([]),
  /** Directory that holds the repositories, one directory each, beside `pins.json`; relative to `cdk.json`. */
  skills: z.string().min(1).default("skills"),
  /** Which of its repositories are loaded; left out, all that are pinned. */
  repositories: z.array(z.string().regex(new RegExp(`^${NAME_PATTERN}$`))).optional(),
  auth: AuthMode.default("iam"),
  ...TIME_SETTINGS,
  artifactDays: z.int().min(1).max(3650).default(7),
  limits: LimitsInput.default({}),
  /** Declares the MCP servers that lend tools; relative to `cdk.json`. No such file: no servers. */
  mcp: z.string().min(1).default("mcp.json"),
  /** Asynchronous jobs that are worked on at the same time. */
  asyncJobsAtOnce: z.int().min(2).max(1000).default(10),
  /**
   * Requests that are answered at the same time, kept free for them in the account; left out, as the account allows.
   */
  httpConcurrency: z.int().min(1).max(10_000).optional(),
  logDays: z
    .int()
    .refine((days) => LOG_DAYS.includes(days), { error: `one of ${LOG_DAYS.join(", ")} expected` })
    .default(30),
  /** What becomes of bucket and files when the stack is deleted. */
  dataAtRemoval: z.enum(["keep", "delete"]).default("keep"),
  /** Customer managed key for bucket, queues and logs; left out, keys of the services. */
  encryptionKeyArn: z
    .string()
    .regex(
      /^arn:[a-z-]+:kms:[a-z0-9-]+:\d{12}:key\/(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})$/,
      "the ARN of a KMS key expected, no alias",
    )
    .optional(),
  /** Topic that is told of every alarm; left out, alarms only show. */
  alarmTopicArn: z
    .string()
    .regex(/^arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+$/, "the ARN of an SNS topic expected")
    .optional(),
  tags: AwsTags.default({}),
});
export type OperatorSettings = z.infer<typeof OperatorSettings>;

const OURS = new Set(Object.keys(OperatorSettings.shape));
/** Keys of the CDK and its libraries always hold one of these; ours never do. */
const FOREIGN_KEY = /[:/@-]/;
/** Ours as they could be misspelt, `artifact-days`, with how they are written. */
const SPELLINGS: ReadonlyMap<string, string> = new Map([...OURS].map((name) => [toSpelling(name), name]));

function toSpelling(key: string): string {
  return key.replaceAll(/[-_]/g, "").toLowerCase();
}

/** What was read, undefined when it has mistakes; and all of these, each by its key. */
export type ReadSettings = {
  readonly settings: OperatorSettings | undefined;
  readonly violations: readonly Violation[];
};

/** Every key is taken for a setting, and refused when it is none. */
export function readSettings(written: Readonly<Record<string, unknown>>): ReadSettings {
  const parsed = OperatorSettings.safeParse(written);
  const violations = [...(parsed.success ? [] : toViolations(parsed.error)), ...findWaitProblems(written)];
  return { settings: parsed.success && violations.length === 0 ? parsed.data : undefined, violations };
}

/** What of a context is meant for us: keys that belong to the CDK are left out, unknown and misspelt words are not. */
export function pickSettings(context: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const ours = Object.entries(context).filter(
    ([key]) => OURS.has(key) || !FOREIGN_KEY.test(key) || SPELLINGS.has(toSpelling(key)),
  );
  return Object.fromEntries(ours);
}

/** The same in the words of a context, which knows by what else a key was meant, and may be given as `-c key=value`. */
export function toContextWords({ path, message }: Violation): Violation {
  const [, key = ""] = path.split("/");
  const meant = OURS.has(key) ? undefined : SPELLINGS.get(toSpelling(key));
  if (meant !== undefined) return { path, message: `is written ${meant}` };
  const text = path === `/${key}` && message.endsWith(", received string");
  return text
    ? { path, message: `${message}; -c makes texts of all values, so write it into cdk.json` }
    : { path, message };
}

/** All mistakes together, each by its key. Keys that belong to the CDK are passed over, unknown words are refused. */
export function parseSettings(context: Readonly<Record<string, unknown>>): Outcome<OperatorSettings> {
  const { settings, violations } = readSettings(pickSettings(context));
  if (settings !== undefined) return succeed(settings);
  return refuseAll('the settings in cdk.json "context" are not valid', violations.map(toContextWords));
}

/** Every mistake, in the message as a list. */
export function refuseAll(headline: string, violations: readonly Violation[]): Outcome<never> {
  const lines = violations.map(({ path, message }) => `  ${path}: ${message}`).join("\n");
  return refuse("REQUEST_INVALID", `${headline}:\n${lines}`, { violations });
}

const { debounceSeconds, longestWaitSeconds, reconcileSeconds, maxListAgeSeconds } = TIME_SETTINGS;
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
