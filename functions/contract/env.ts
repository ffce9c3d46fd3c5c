import * as z from "zod";
import { Fault } from "./fault.ts";
import { parseStrictJson } from "./json.ts";
import { LimitsInput } from "./limits.ts";
import { AuthMode } from "./settings.ts";
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

export const HttpEnv = z.object({
  BUCKET_NAME: z.string().min(3).max(63),
  /** JSON array of approved refs and bundles. */
  APPROVED_TOOLS: json(z.array(z.string())),
  /** JSON object of limits that differ from the defaults. */
  LIMITS: json(LimitsInput),
  AUTH: AuthMode,
  /** Whole days that artifacts are kept. */
  ARTIFACT_DAYS: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, "whole number of days expected")
    .transform(Number),
});
export type HttpEnv = z.infer<typeof HttpEnv>;

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
