import type * as z from "zod";
import { ToolInputError } from "../contract/fault.ts";
import type { JsonObject } from "../contract/tool.ts";
import { toViolations } from "../contract/violations.ts";

/**
 * The arguments as the handler needs them. Throws `ToolInputError` with every violation: a skill's own schema comes
 * from a directory, so a handler cannot take for granted what it says.
 */
export function readArguments<T extends z.ZodType>(schema: T, given: JsonObject): z.infer<T> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const violations = toViolations(parsed.error);
  const [first] = violations;
  throw new ToolInputError(`the arguments do not fit: ${first?.path || "/"} ${first?.message}`, violations);
}

/** Throws `ToolInputError` about one argument. */
export function refuseArgument(path: string, message: string): never {
  throw new ToolInputError(`the arguments do not fit: ${path || "/"} ${message}`, [{ path, message }]);
}
