import type { Violation } from "../../contract/fault.ts";
import { quoted } from "../../contract/printable.ts";
import { toPointer } from "../../contract/violations.ts";

/**
 * Arguments that a definition asks for in headers as well. A client must set aside a tool that asks in a way that is
 * not provided for (MCP 2026-07-28, Streamable HTTP, `x-mcp-header`): whatever stands between would decide by headers
 * that say something else than the arguments.
 */

const ANNOTATION = "x-mcp-header";
/** What the name of a header is made of (RFC 9110, `token`). */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** A fraction can be written in several ways. */
const MIRRORED_TYPES: ReadonlySet<unknown> = new Set(["string", "integer", "boolean"]);

/** Keywords that hold a schema, or a list of them, for what need not be there or is no argument of its own. */
const WITH_SCHEMAS: ReadonlySet<string> = new Set([
  ...["additionalItems", "contains", "items", "prefixItems", "unevaluatedItems"],
  ...["additionalProperties", "propertyNames", "unevaluatedProperties"],
  ...["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contentSchema"],
]);
/** Keywords that hold a schema for each of several names. */
const WITH_NAMED_SCHEMAS: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"],
]);

type Place = {
  readonly schema: ReadonlyMap<string, unknown>;
  readonly path: readonly string[];
  /** True as long as the way from the top leads through `properties` alone. */
  readonly isCertain: boolean;
};

/**
 * An annotation that is not provided for, by its JSON Pointer in the schema: one that is not on a property reached by
 * `properties` alone, not on a text, an integer or a boolean, or whose name is none or stands twice. What is no schema,
 * such as a `default`, may hold the word. The schema must not be nested without bounds: this recurses.
 */
export function findHeaderProblem(inputSchema: unknown): Violation | undefined {
  const taken = new Set<string>();
  for (const { schema, path, isCertain } of placesFrom(inputSchema, { path: [], isCertain: true })) {
    if (!schema.has(ANNOTATION)) continue;
    const isArgument = isCertain && path.length > 0;
    const message = isArgument ? findMistake(schema, taken) : "stands where no single argument is meant";
    if (message !== undefined) return { path: toPointer([...path, ANNOTATION]), message };
  }
  return undefined;
}

/** Notes the name in `taken`; names of headers differ by more than case. */
function findMistake(schema: Place["schema"], taken: Set<string>): string | undefined {
  const name = schema.get(ANNOTATION);
  const type = schema.get("type");
  if (typeof name !== "string" || !TOKEN.test(name)) return "the name of an HTTP header wanted";
  if (!MIRRORED_TYPES.has(type)) return "only a string, an integer or a boolean can be sent in a header";
  if (taken.has(name.toLowerCase())) return `the name ${quoted(name)} stands twice`;
  taken.add(name.toLowerCase());
  return undefined;
}

/** The schema and all schemas inside it; a list in its place is a list of them. */
function* placesFrom(value: unknown, { path, isCertain }: Omit<Place, "schema">): Generator<Place> {
  if (Array.isArray(value)) {
    for (const [index, each] of value.entries()) {
      yield* placesFrom(each, { path: [...path, String(index)], isCertain: false });
    }
    return;
  }
  const schema = membersOf(value);
  if (schema.size > 0) yield { schema, path, isCertain };
  for (const [keyword, inner] of schema) {
    const into = { path: [...path, keyword], isCertain: isCertain && keyword === "properties" };
    if (WITH_SCHEMAS.has(keyword)) yield* placesFrom(inner, into);
    if (!WITH_NAMED_SCHEMAS.has(keyword)) continue;
    for (const [name, each] of membersOf(inner)) yield* placesFrom(each, { ...into, path: [...into.path, name] });
  }
}

function membersOf(value: unknown): ReadonlyMap<string, unknown> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return new Map(isObject ? Object.entries(value) : []);
}
