import type { ErrorObject, ValidateFunction } from "ajv";
import { Fault, type Outcome, succeed, type Violation } from "../contract/fault.ts";
import type { JsonObject, ToolSpec } from "../contract/tool.ts";
import { toPointer } from "../contract/violations.ts";

/**
 * Arguments against a tool's JSON Schema, 2020-12 or draft-07 as the schema declares. The validator is loaded and the
 * schema compiled at the first call of a tool: both together would quadruple a cold start. Patterns run in a
 * linear-time engine, because a schema may come from anyone and `^(a+)+$` would otherwise hold the thread.
 */

export type ArgumentChecker = (spec: ToolSpec, given: JsonObject) => Promise<Outcome<null>>;

const DRAFT_07 = "http://json-schema.org/draft-07/schema";
/** More would drown the reader, and a model reads them all. */
const MAX_VIOLATIONS = 50;

/** A checker with its own cache of compiled schemas, one per digest of definition. */
export function createArgumentChecker(): ArgumentChecker {
  const compiled = new Map<string, ValidateFunction>();
  return async (spec, given) => {
    const key = `${spec.ref} ${spec.digest}`;
    const validate = compiled.get(key) ?? (await compile(spec));
    if (!(validate instanceof Fault)) compiled.set(key, validate);
    else return { ok: false, fault: validate };
    if (validate(given)) return succeed(null);
    const violations = toSchemaViolations(validate.errors ?? [], given);
    const [first] = violations;
    const message = `the arguments of ${spec.ref} do not fit: ${first?.path || "/"} ${first?.message}`;
    return { ok: false, fault: new Fault("TOOL_INPUT_INVALID", message, { violations }) };
  };
}

/** Compiles the schema, or says why the tool cannot be called. Nothing is ever fetched for a `$ref`. */
async function compile({ ref, inputSchema }: ToolSpec): Promise<ValidateFunction | Fault> {
  const [{ Ajv }, { Ajv2020 }, { RE2JS }] = await Promise.all([
    import("ajv"),
    import("ajv/dist/2020.js"),
    import("re2js"),
  ]);
  const draft07 = String(inputSchema.$schema ?? "").replace(/#$/, "") === DRAFT_07;
  const linear = Object.assign((pattern: string) => RE2JS.compile(pattern), { code: "linearTimeRegExp" });
  const options = {
    allErrors: true,
    strict: false,
    validateFormats: false,
    verbose: true,
    addUsedSchema: false,
    code: { regExp: linear },
  } as const;
  try {
    return draft07 ? new Ajv(options).compile(inputSchema) : new Ajv2020(options).compile(inputSchema);
  } catch (error) {
    return new Fault("TOOL_UNAVAILABLE", `${ref}: its argument schema cannot be used; the operator must correct it`, {
      cause: error,
    });
  }
}

function toSchemaViolations(errors: readonly ErrorObject[], given: JsonObject): readonly Violation[] {
  const unknown = errors.filter(({ keyword }) => isUnknownKey(keyword)).map(toViolation);
  const others = errors.filter(({ keyword }) => !isUnknownKey(keyword) && keyword !== "if").map(toViolation);
  unknown.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  const all = [...unknown, ...others];
  return all.length > 0 ? all.slice(0, MAX_VIOLATIONS) : [{ path: "", message: `not accepted, ${typeof given} given` }];
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
