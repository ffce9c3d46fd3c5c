import type { ErrorObject } from "ajv";
import { type Outcome, refuse, succeed, type Violation } from "../contract/fault.ts";
import type { JsonObject, ToolSpec } from "../contract/tool.ts";
import { toPointer } from "../contract/violations.ts";
import type { CompiledSchema } from "./compile-schema.ts";

/**
 * Arguments against a tool's JSON Schema, 2020-12 or draft-07 as the schema declares. The validator is loaded and the
 * schema compiled at the first call of a tool, so that a cold start pays for neither. Patterns run in a
 * linear-time engine, because a schema may come from anyone and `^(a+)+$` would otherwise hold the thread.
 */

export type ArgumentChecker = (spec: ToolSpec, given: JsonObject) => Promise<Outcome<null>>;

/** More would drown the reader, and a model reads them all. */
const MAX_VIOLATIONS = 50;
const MAX_NAMED = 8;

/** A checker with its own cache of compiled schemas, one per digest of definition. */
export function createArgumentChecker(): ArgumentChecker {
  const compiled = new Map<string, Promise<CompiledSchema>>();
  return async (spec, given) => {
    const key = `${spec.ref} ${spec.digest}`;
    const compiling = compiled.get(key) ?? compile(spec.inputSchema);
    compiled.set(key, compiling);
    const { check, cause } = await compiling;
    if (check === undefined) return unusable(spec, cause);
    try {
      const errors = check(given);
      return errors.length === 0 ? succeed(null) : misfit(spec, toSchemaViolations(errors));
    } catch (error) {
      // A schema that refers to itself without going deeper into the arguments, or twice to what refers twice, never
      // ends.
      return unusable(spec, error);
    }
  };
}

async function compile(schema: JsonObject): Promise<CompiledSchema> {
  const { compileSchema } = await import("./compile-schema.ts");
  return compileSchema(schema);
}

function unusable({ ref }: ToolSpec, cause: unknown): Outcome<never> {
  return refuse("TOOL_UNAVAILABLE", `${ref}: its argument schema cannot be used; the operator must correct it`, {
    cause,
  });
}

function misfit({ ref }: ToolSpec, violations: readonly Violation[]): Outcome<never> {
  return refuse("TOOL_INPUT_INVALID", `the arguments of ${ref} do not fit: ${summarize(violations)}`, { violations });
}

/** In one line, for a model that reads nothing else: every misspelt name should be in it. */
function summarize(violations: readonly Violation[]): string {
  const named = violations.slice(0, MAX_NAMED).map(({ path, message }) => `${path || "/"} ${message}`);
  const others = violations.length - named.length;
  return named.join("; ") + (others > 0 ? `; and ${others} more` : "");
}

/** Unknown names first, sorted; never empty. Only what is shown is put into words: a call can hold 130,000 mistakes. */
function toSchemaViolations(errors: readonly ErrorObject[]): readonly Violation[] {
  const unknown = errors.filter(({ keyword }) => isUnknownKey(keyword)).map(toViolation);
  unknown.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  const others = errors.filter(({ keyword }) => !isUnknownKey(keyword) && keyword !== "if").slice(0, MAX_VIOLATIONS);
  const all = [...unknown.slice(0, MAX_VIOLATIONS), ...others.map(toViolation)].slice(0, MAX_VIOLATIONS);
  return all.length > 0 ? all : [{ path: "", message: "is not accepted" }];
}

function isUnknownKey(keyword: string): boolean {
  return keyword === "additionalProperties" || keyword === "unevaluatedProperties";
}

function toViolation({ instancePath, keyword, params, message, data }: ErrorObject): Violation {
  switch (keyword) {
    case "additionalProperties":
    case "unevaluatedProperties": {
      const key = String(params.additionalProperty ?? params.unevaluatedProperty);
      return {
        path: instancePath + toPointer([key]),
        message: `unknown argument ${JSON.stringify(key)}; leave it out`,
      };
    }
    case "required":
      return { path: instancePath + toPointer([String(params.missingProperty)]), message: "is required" };
    case "type": {
      const advice = data === null ? "null; leave an optional argument out instead" : jsonTypeOf(data);
      return { path: instancePath, message: `must be ${[params.type].flat().join(" or ")}, got ${advice}` };
    }
    case "enum":
      return { path: instancePath, message: `must be one of ${JSON.stringify(params.allowedValues)}` };
    default:
      return { path: instancePath, message: message ?? `breaks ${keyword}` };
  }
}

function jsonTypeOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value;
}
