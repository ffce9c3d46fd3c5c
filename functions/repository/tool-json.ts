import * as z from "zod";
import { parseStrictJson } from "../contract/json.ts";
import { type JsonObject, parseToolRef, type ToolRef } from "../contract/tool.ts";
import { toViolations } from "../contract/violations.ts";

/** `tool.json`: what makes a skill callable. Data only: it names a handler, it never brings one. */

const TEMPLATE_PATH = /^templates\/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;

const ToolJson = z.strictObject({
  id: z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, "a-z first, then a-z 0-9 _, at most 64"),
  version: z.string().regex(/^[0-9A-Za-z][0-9A-Za-z.-]{0,31}$/, "0-9 A-Z a-z . -, at most 32"),
  handler: z.string().min(1).max(64),
  input_schema: z.record(z.string(), z.unknown()),
  output_schema: z.record(z.string(), z.unknown()).optional(),
  templates: z
    .record(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/), z.string().regex(TEMPLATE_PATH, "templates/<file> expected"))
    .optional(),
});

/** Dialects that a schema may declare; 2020-12 when it declares none (MCP 2026-07-28, basic). */
export const DIALECTS: ReadonlySet<string> = new Set([
  "https://json-schema.org/draft/2020-12/schema",
  "http://json-schema.org/draft-07/schema",
]);

const MAX_DEPTH = 32;
/** Above this a schema costs seconds to compile (nested combinators, measured 4.7 s). */
const MAX_SCHEMA_BYTES = 64 * 1024;

export type ToolDefinition = {
  readonly ref: ToolRef;
  readonly id: string;
  readonly version: string;
  readonly handler: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject | undefined;
  /** Template name -> path below the skill. */
  readonly templates: ReadonlyMap<string, string>;
};

export type ToolJsonResult =
  | { readonly ok: true; readonly definition: ToolDefinition }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Reads `tool.json`. Never throws; all problems together, each without the file's name. */
export function parseToolJson(bytes: Uint8Array, handlers: ReadonlySet<string>): ToolJsonResult {
  const text = decodeUtf8(bytes);
  if (text === undefined) return failed("is not valid UTF-8");
  const json = parseStrictJson(text, { maxDepth: MAX_DEPTH });
  if (!json.ok) return failed(json.fault.message);
  const parsed = ToolJson.safeParse(json.value);
  if (!parsed.success) return failed(...toViolations(parsed.error).map(({ path, message }) => `${path}: ${message}`));
  const { id, version, handler, input_schema, output_schema, templates } = parsed.data;
  const ref = parseToolRef(`${id}@${version}`);
  const problems = [
    ...(handlers.has(handler)
      ? []
      : [`/handler: unknown handler "${handler}", one of ${[...handlers].join(", ")} wanted`]),
    ...schemaProblems("/input_schema", input_schema),
    ...(output_schema === undefined ? [] : schemaProblems("/output_schema", output_schema)),
  ];
  if (problems.length > 0 || ref === undefined) return failed(...problems);
  const templatePaths = new Map(Object.entries(templates ?? {}));
  const schemas = { inputSchema: input_schema, outputSchema: output_schema };
  return { ok: true, definition: { ref, id, version, handler, ...schemas, templates: templatePaths } };
}

function failed(...problems: string[]): ToolJsonResult {
  return { ok: false, problems };
}

/** What can be told without compiling: compiling every schema would cost a cold start four times its length. */
function schemaProblems(where: string, schema: JsonObject): string[] {
  const problems: string[] = [];
  const { $schema: dialect, type } = schema;
  if (type !== "object") problems.push(`${where}/type: "object" wanted, since arguments are an object`);
  if (dialect !== undefined && (typeof dialect !== "string" || !DIALECTS.has(dialect.replace(/#$/, "")))) {
    problems.push(`${where}/$schema: unsupported dialect ${JSON.stringify(dialect)}; 2020-12 or draft-07 wanted`);
  }
  if (JSON.stringify(schema).length > MAX_SCHEMA_BYTES)
    problems.push(`${where}: larger than ${MAX_SCHEMA_BYTES} bytes`);
  return problems;
}

/** Undefined when the bytes are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    // The decoder's error says nothing more than that.
    return undefined;
  }
}
