import { Ajv, type FuncKeywordDefinition, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";
import { toCanonicalJson } from "../contract/json.ts";
import type { JsonObject } from "../contract/tool.ts";

/**
 * The half of checking arguments that is slow to load; it is imported dynamically as a whole, because ajv is CommonJS
 * and a dynamic import of ajv itself would lose its names in the bundle.
 */

export type CompiledSchema = { readonly validate?: ValidateFunction; readonly cause?: unknown };

const DRAFT_07 = "http://json-schema.org/draft-07/schema";

/** Compiles the schema, or says why it cannot be used. Nothing is ever fetched for a `$ref`. */
export function compileSchema(schema: JsonObject): CompiledSchema {
  const linear = (pattern: string) => RE2JS.compile(RE2JS.translateRegExp(pattern));
  const options = {
    allErrors: true,
    strict: false,
    validateFormats: false,
    verbose: true,
    // Else an argument "constructor" is present in every object.
    ownProperties: true,
    code: { regExp: Object.assign(linear, { code: "linear" }) },
  } as const;
  try {
    const validator = isDraft07(schema) ? new Ajv(options) : new Ajv2020(options);
    validator.removeKeyword("uniqueItems").addKeyword(UNIQUE_ITEMS);
    const validate = validator.compile(schema);
    // An asynchronous validator answers with a promise, and every promise is truthy.
    if ("$async" in validate) throw new Error("the schema is asynchronous");
    return { validate };
  } catch (cause) {
    return { cause };
  }
}

function isDraft07({ $schema: dialect }: JsonObject): boolean {
  return typeof dialect === "string" && dialect.replace(/#$/, "") === DRAFT_07;
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
