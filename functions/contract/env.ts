import * as z from "zod";
import { AuthMode } from "./auth.ts";
import { Fault } from "./fault.ts";
import { parseStrictJson } from "./json.ts";
import { LimitsInput } from "./limits.ts";
import { TIME_SETTINGS } from "./time-settings.ts";
import { toViolations } from "./violations.ts";

/** The environment of each function, parsed once at cold start. Nothing else reads the environment. */

const json = <T extends z.ZodType>(schema: T) =>
  z
    .string()
    .transform((text, context) => {
      const parsed = parseStrictJson(text, { maxDepth: 8 });
      if (parsed.ok) return parsed.value;
      context.addIssue({ code: "custom", message: parsed.fault.message });
      return z.NEVER;
    })
    .pipe(schema);

const { asyncJobSeconds, debounceSeconds, longestWaitSeconds, reconcileSeconds, maxListAgeSeconds } = TIME_SETTINGS;

/** A setting in seconds, within the setting's own bounds. */
const seconds = (setting: z.ZodDefault<z.ZodNumber>) =>
  z
    .string()
    .regex(/^(?:0|[1-9]\d{0,9})(?:\.\d{1,20})?$/, "number of seconds expected")
    .transform(Number)
    .pipe(setting.unwrap());

const BucketName = z.string().min(3).max(63);
const QueueUrl = z.url({ protocol: /^https?$/, error: "http or https URL expected" });

export const HttpEnv = z.object({
  BUCKET_NAME: BucketName,
  NOTIFICATIONS_QUEUE_URL: QueueUrl,
  /** JSON object of limits that differ from the defaults. */
  LIMITS: json(LimitsInput),
  /** As JSON, as the operator wrote it. */
  AUTH: json(AuthMode),
  JOBS_QUEUE_URL: QueueUrl,
  ASYNC_JOB_SECONDS: seconds(asyncJobSeconds),
  /** Whole days that artifacts are kept. */
  ARTIFACT_DAYS: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, "whole number of days expected")
    .transform(Number),
  MAX_LIST_AGE_SECONDS: seconds(maxListAgeSeconds),
});
export type HttpEnv = z.infer<typeof HttpEnv>;

export const WorkerEnv = z.object({
  BUCKET_NAME: BucketName,
  LIMITS: json(LimitsInput),
  ASYNC_JOB_SECONDS: seconds(asyncJobSeconds),
  MAX_LIST_AGE_SECONDS: seconds(maxListAgeSeconds),
});
export type WorkerEnv = z.infer<typeof WorkerEnv>;

export const DeadJobsEnv = z.object({ BUCKET_NAME: BucketName });
export type DeadJobsEnv = z.infer<typeof DeadJobsEnv>;

export const NotifyEnv = z.object({
  BUCKET_NAME: BucketName,
  REFRESH_QUEUE_URL: QueueUrl,
  DEBOUNCE_SECONDS: seconds(debounceSeconds),
});
export type NotifyEnv = z.infer<typeof NotifyEnv>;

export const RefreshEnv = z.object({
  BUCKET_NAME: BucketName,
  DEBOUNCE_SECONDS: seconds(debounceSeconds),
  LONGEST_WAIT_SECONDS: seconds(longestWaitSeconds),
  MAX_LIST_AGE_SECONDS: seconds(maxListAgeSeconds),
});
export type RefreshEnv = z.infer<typeof RefreshEnv>;

export const ReconcileEnv = z.object({
  BUCKET_NAME: BucketName,
  NOTIFICATIONS_QUEUE_URL: QueueUrl,
  RECONCILE_SECONDS: seconds(reconcileSeconds),
  MAX_LIST_AGE_SECONDS: seconds(maxListAgeSeconds),
});
export type ReconcileEnv = z.infer<typeof ReconcileEnv>;

/** Throws one `DEFECT` that names every missing or malformed variable. */
export function parseEnv<T extends z.ZodType>(
  schema: T,
  env: Readonly<Record<string, string | undefined>>,
): z.infer<T> {
  const parsed = schema.safeParse(env);
  if (parsed.success) return parsed.data;
  const faults = toViolations(parsed.error).map(({ path, message }) => `${path.slice(1)}: ${message}`);
  throw new Fault("DEFECT", `the function's environment is not valid: ${faults.join("; ")}`);
}
