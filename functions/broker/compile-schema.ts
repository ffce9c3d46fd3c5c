import { Ajv, type ErrorObject, type FuncKeywordDefinition } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";
import { toCanonicalJson } from "../contract/json.ts";
import type { JsonObject } from "../contract/tool.ts";

/**
 * The half of checking arguments that is slow to load; it is imported dynamically as a whole, because ajv is CommonJS
 * and a dynamic import of ajv itself would lose its names in the bundle.
 */

/** What is wrong with the arguments; empty when they fit. Throws when the schema takes more work than any should. */
export type Check = (given: JsonObject) => readonly ErrorObject[];
export type CompiledSchema = { readonly check?: Check; readonly cause?: unknown };

const DRAFT_07 = "http://json-schema.org/draft-07/schema";

/**
 * Schemas applied while one set of arguments is checked. 256 KiB of arguments meet our own schemas some 130,000 times;
 * forty definitions that each refer twice to the next one would be applied 2^40 times.
 */
export const MAX_CHECK_STEPS = 1_000_000;

/** Compiles the schema, or says why it cannot be used. Nothing is ever fetched for a `$ref`. */
export function compileSchema(schema: JsonObject): CompiledSchema {
  const linear = (pattern: string) => RE2JS.compile(RE2JS.translateRegExp(pattern));
  const options = {
    allErrors: true,
    strict: false,
    validateFormats: false,
    verbose: true,
    // 19.99 is a multiple of 0.01, whatever binary fractions say.
    multipleOfPrecision: 6,
    // Else an argument "constructor" is present in every object.
    ownProperties: true,
    code: { regExp: Object.assign(linear, { code: "linear" }) },
  } as const;
  let steps = 0;
  const count = () => {
    steps += 1;
    if (steps > MAX_CHECK_STEPS) throw new Error(`the schema is applied more than ${MAX_CHECK_STEPS} times`);
    return true;
  };
  try {
    const validator = isDraft07(schema) ? new Ajv(options) : new Ajv2020(options);
    validator.removeKeyword("uniqueItems").addKeyword(UNIQUE_ITEMS);
    validator.addKeyword({ keyword: COUNTED, schemaType: "boolean", errors: false, validate: count });
    const validate = validator.compile(toCounted(schema));
    // An asynchronous validator answers with a promise, and every promise is truthy.
    if ("$async" in validate) throw new Error("the schema is asynchronous");
    return {
      check: (given) => {
        steps = 0;
        return validate(given) ? [] : (validate.errors ?? []);
      },
    };
  } catch (cause) {
    return { cause };
  }
}

function isDraft07({ $schema: dialect }: JsonObject): boolean {
  return typeof dialect === "string" && dialect.replace(/#$/, "") === DRAFT_07;
}

/** Ours alone: a schema that brings a keyword of this name has it replaced. */
const COUNTED = "skillbroker-counted";
const HOLDS_SCHEMA: ReadonlySet<string> = new Set([
  "additionalItems",
  "additionalProperties",
  "contains",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);
const HOLDS_SCHEMA_LIST: ReadonlySet<string> = new Set(["allOf", "anyOf", "items", "oneOf", "prefixItems"]);
const HOLDS_SCHEMA_MAP: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/** The schema with a keyword in each subschema that counts how often it is applied. */
function toCounted(schema: JsonObject): JsonObject {
  const members = Object.entries(schema).map(([key, value]) => [key, toCountedMember(key, value)]);
  return { ...Object.fromEntries(members), [COUNTED]: true };
}

function toCountedMember(key: string, value: unknown): unknown {
  if (Array.isArray(value)) return HOLDS_SCHEMA_LIST.has(key) ? value.map((each) => countedIfSchema(each)) : value;
  if (HOLDS_SCHEMA.has(key)) return countedIfSchema(value);
  if (!HOLDS_SCHEMA_MAP.has(key) || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, countedIfSchema(each)]));
}

function countedIfSchema(value: unknown): unknown {
  return isObject(value) ? toCounted(value) : value;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Linear in place of quadratic: 256 KiB of small objects would take ajv's own `uniqueItems` ten seconds. */
const UNIQUE_ITEMS: FuncKeywordDefinition = {
  keyword: "uniqueItems",
  type: "array",
  schemaType: "boolean",
  error: { message: "must not hold an item twice" },
  validate: (wanted: boolean, items: readonly unknown[]) =>
    !wanted || new Set(items.map(toCanonicalJson)).size === items.length,
};
