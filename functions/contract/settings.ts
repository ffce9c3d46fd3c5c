import * as z from "zod";
import { type Outcome, refuse, succeed, type Violation } from "./fault.ts";
import { LimitsInput } from "./limits.ts";
import { NAME_PATTERN } from "./skill.ts";
import { toViolations } from "./violations.ts";

/** The operator's choices, from the `context` of `cdk.json`; the same for the cloud and for one machine. */

/** Groups of routes that are allowed one by one. */
export const ROUTE_GROUPS = ["run", "read", "notify", "operate"] as const;
export type RouteGroup = (typeof ROUTE_GROUPS)[number];

/** RFC 6749, 3.3: printable, without space, quote and backslash. */
const Scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/, "a scope without spaces expected");

/**
 * Callers bring a token of this issuer; each group of routes wants a scope of its own. All of it fits into the environment
 * of a function, which has 4 KiB.
 */
export const JwtAuth = z.strictObject({
  issuer: z
    .url({ protocol: /^https$/, error: "an https URL expected, that of the issuer as its tokens have it" })
    .max(500),
  audience: z.array(z.string().min(1).max(200)).min(1, "at least one audience expected").max(8),
  scopes: z
    .strictObject({
      run: Scope.default("skillbroker/run"),
      read: Scope.default("skillbroker/read"),
      notify: Scope.default("skillbroker/notify"),
      operate: Scope.default("skillbroker/operate"),
    })
    .prefault({}),
});
export type JwtAuth = z.infer<typeof JwtAuth>;

const AuthName = z.enum(["iam", "none"], { error: '"iam", "none" or an object with issuer and audience expected' });
export const AuthMode = z.union([AuthName, JwtAuth]);
export type AuthMode = z.infer<typeof AuthMode>;

/** The days that CloudWatch keeps logs for. */
const LOG_DAYS = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
];

/** Longest time of an asynchronous job in seconds; a Lambda has 900, and needs some of them to store what was made. */
export const MOST_ASYNC_JOB_SECONDS = 840;

export const OperatorSettings = z.strictObject({
  /** Approved refs and bundles. Left out, nothing is approved. */
  tools: z.array(z.string().min(1).max(300)).max(1_000).default([]),
  /** Directory that holds the repositories, one directory each, beside `pins.json`; relative to `cdk.json`. */
  skills: z.string().min(1).default("skills"),
  /** Which of its repositories are loaded; left out, all that are pinned. */
  repositories: z.array(z.string().regex(new RegExp(`^${NAME_PATTERN}$`))).optional(),
  auth: AuthMode.default("iam"),
  /** Longest time of a job that is run with `Prefer: respond-async`. */
  asyncJobSeconds: z.int().min(1).max(MOST_ASYNC_JOB_SECONDS).default(300),
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
  /** Asynchronous jobs that are worked on at the same time. */
  asyncJobsAtOnce: z.int().min(2).max(1000).default(10),
  /** Requests that are answered at the same time, kept free for them in the account; left out, as the account allows. */
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
  tags: z.record(z.string().min(1).max(128), z.string().max(256)).default({}),
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
