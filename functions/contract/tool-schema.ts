import * as z from "zod";
import { quoted } from "./printable.ts";
import { utf8ByteCount } from "./text.ts";

/** The argument schema of a tool, whoever wrote it: an author's `tool.json` or an MCP server's list. */

/** Dialects that a schema may declare; 2020-12 when it declares none (MCP 2026-07-28, basic). */
const DIALECTS: ReadonlySet<string> = new Set([
  "https://json-schema.org/draft/2020-12/schema",
  "http://json-schema.org/draft-07/schema",
]);

/** Above this a schema costs seconds to compile (nested combinators, measured 4.7 s). */
export const MAX_SCHEMA_BYTES = 64 * 1024;

/**
 * What can be told of a schema without compiling it: a cold start should not load the compiler. At its top it must take
 * objects, because arguments are one.
 */
export const ToolSchema = z.record(z.string(), z.unknown()).superRefine((schema, context) => {
  const { $schema: dialect, type } = schema;
  const report = (path: string[], message: string) => context.addIssue({ code: "custom", path, message });
  if (type !== "object") report(["type"], `"object" wanted, got ${quotedJson(type)}`);
  if (dialect !== undefined && !isDialect(dialect)) {
    report(["$schema"], `unsupported dialect ${quotedJson(dialect)}; 2020-12 or draft-07 wanted`);
  }
  const bytes = utf8ByteCount(JSON.stringify(schema));
  if (bytes > MAX_SCHEMA_BYTES) report([], `has ${bytes} bytes, at most ${MAX_SCHEMA_BYTES} are allowed`);
});

function isDialect(dialect: unknown): boolean {
  return typeof dialect === "string" && DIALECTS.has(dialect.replace(/#$/, ""));
}

function quotedJson(value: unknown): string {
  return value === undefined ? "nothing" : quoted(typeof value === "string" ? value : JSON.stringify(value));
}
