import * as z from "zod";
import { type Outcome, refuse, succeed, type Violation } from "./fault.ts";

const KIBI = 1024;
const MEBI = 1024 * KIBI;

/**
 * Every limit of a job with its default, in one place. The operator may set other values; a job may only lower them.
 * All `*_bytes` are bytes, all `*_ms` milliseconds, all `*_seconds` seconds.
 */
export const DEFAULT_LIMITS = {
  max_calls: 16,
  call_timeout_ms: 5_000,
  job_timeout_ms: 20_000,
  max_argument_bytes: 256 * KIBI,
  max_output_bytes: 64 * KIBI,
  max_artifact_bytes: 4 * MEBI,
  max_total_artifact_bytes: 16 * MEBI,
  link_seconds: 15 * 60,
} as const;

export type LimitName = keyof typeof DEFAULT_LIMITS;
export type Limits = Readonly<Record<LimitName, number>>;

const wholeNumber = (description: string) => z.int().min(1).meta({ description });

/** A subset of the limits, as a job or an operator writes it. */
export const LimitsInput = z
  .strictObject({
    max_calls: wholeNumber("calls a job may make").optional(),
    call_timeout_ms: wholeNumber("milliseconds a call may take").optional(),
    job_timeout_ms: wholeNumber("milliseconds after which no further call is started").optional(),
    max_argument_bytes: wholeNumber("bytes of JSON arguments a call may be given").optional(),
    max_output_bytes: wholeNumber("bytes of JSON that a call may answer, artifact not counted").optional(),
    max_artifact_bytes: wholeNumber("bytes of one artifact").optional(),
    max_total_artifact_bytes: wholeNumber("bytes of all artifacts of a job").optional(),
    link_seconds: wholeNumber("seconds that a download link lives")
      .max(7 * 24 * 3600)
      .optional(),
  })
  .meta({ id: "Limits" });
export type LimitsInput = z.infer<typeof LimitsInput>;

const LIMIT_NAMES = LimitsInput.keyof().options;

/** The operator's limits: the defaults with what the operator set. */
export function operatorLimits(chosen: LimitsInput): Limits {
  return { ...DEFAULT_LIMITS, ...withoutUndefined(chosen) };
}

/** Those of a job that nobody waits for: it may take another time, and everything else is as for the others. */
export function toAsyncLimits(limits: Limits, asyncJobSeconds: number): Limits {
  return { ...limits, job_timeout_ms: asyncJobSeconds * 1000 };
}

/** A job's limits: the operator's, lowered by what the job asks for; asking for more is refused, never clamped. */
export function narrowLimits(operator: Limits, asked: LimitsInput): Outcome<Limits> {
  const wanted = withoutUndefined(asked);
  const violations: Violation[] = [];
  for (const name of LIMIT_NAMES) {
    const value = wanted[name];
    if (value !== undefined && value > operator[name]) {
      violations.push({ path: `/limits/${name}`, message: `at most ${operator[name]}, got ${value}` });
    }
  }
  if (violations.length > 0) {
    return refuse("REQUEST_INVALID", "a job can only lower the operator's limits", { violations });
  }
  return succeed({ ...operator, ...wanted });
}

function withoutUndefined(limits: LimitsInput): Partial<Limits> {
  const kept: { [name in LimitName]?: number } = {};
  for (const name of LIMIT_NAMES) {
    const value = limits[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}
