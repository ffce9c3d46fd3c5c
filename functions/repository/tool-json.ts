import * as z from "zod";
import { parseStrictJson } from "../contract/json.ts";
import { quoted, toVisible } from "../contract/printable.ts";
import { decodeUtf8 } from "../contract/text.ts";
import { type JsonObject, parseToolRef, type ToolRef } from "../contract/tool.ts";
import { ToolSchema } from "../contract/tool-schema.ts";
import { toViolations } from "../contract/violations.ts";

/** `tool.json`: what makes a skill callable. Data only: it names a handler, it never brings one. */

const MAX_DEPTH = 32;
const NAME = /^[a-z][a-z0-9_]{0,63}$/;
const NAME_RULE = "a-z first, then a-z 0-9 _, at most 64";
const TEMPLATE_PATH = /^templates\/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;

/** Every rule belongs to one field, so that all broken rules are reported together. */
function toolJson(handlers: ReadonlySet<string>) {
  return z.strictObject({
    id: patterned(NAME, NAME_RULE),
    version: patterned(/^[0-9A-Za-z][0-9A-Za-z.-]{0,31}$/, "0-9 A-Z a-z . -, at most 32"),
    handler: z.string().refine((name) => handlers.has(name), {
      error: ({ input }) => `unknown handler ${quoted(String(input))}, one of ${[...handlers].join(", ")} wanted`,
    }),
    input_schema: ToolSchema,
    output_schema: ToolSchema.optional(),
    templates: z
      .record(z.string().regex(NAME), patterned(TEMPLATE_PATH, "templates/<file>"), {
        error: ({ code }) => (code === "invalid_key" ? `${NAME_RULE} wanted for a template's name` : undefined),
      })
      .optional(),
  });
}

function patterned(pattern: RegExp, rule: string) {
  return z.string().regex(pattern, { error: ({ input }) => `${rule} wanted, got ${quoted(String(input))}` });
}

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
  const parsed = toolJson(handlers).safeParse(json.value);
  if (!parsed.success) return failed(...toViolations(parsed.error).map(({ path, message }) => `${path}: ${message}`));
  const { id, version, handler, input_schema, output_schema, templates } = parsed.data;
  const ref = parseToolRef(`${id}@${version}`);
  if (ref === undefined) return failed(`/version: ${quoted(`${id}@${version}`)} is not a ref`);
  const templatePaths = new Map(Object.entries(templates ?? {}));
  const schemas = { inputSchema: input_schema, outputSchema: output_schema };
  return { ok: true, definition: { ref, id, version, handler, ...schemas, templates: templatePaths } };
}

function failed(...problems: string[]): ToolJsonResult {
  return { ok: false, problems: problems.map(toVisible) };
}
