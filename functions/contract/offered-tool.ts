import * as z from "zod";
import { digestOfJson } from "./json.ts";
import { ToolRef } from "./tool.ts";
import { ToolSchema } from "./tool-schema.ts";

/** A tool as an MCP server describes it (MCP 2026-07-28, `tools/list`). */
export const OfferedTool = z.object({
  name: z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, "a name of 1 to 128 of A-Z a-z 0-9 _ . - wanted"),
  title: z.string().optional(),
  description: z.string().optional(),
  inputSchema: ToolSchema,
  outputSchema: ToolSchema.optional(),
  annotations: z.record(z.string(), z.unknown()).optional(),
});
export type OfferedTool = z.infer<typeof OfferedTool>;

export const QuarantinedTool = z.object({
  name: z.string().meta({ description: "as offered, made visible; `(unnamed)` when it is no text" }),
  reason: z.string(),
});
export type QuarantinedTool = z.infer<typeof QuarantinedTool>;

/** The parts of a definition that an approval is about, in the order in which a reader wants them. */
export const DEFINITION_FIELDS = [
  "name",
  "title",
  "description",
  "inputSchema",
  "outputSchema",
  "annotations",
] as const satisfies readonly (keyof OfferedTool)[];

/** A list of a thousand tools is digested once, not once for each thing that is said of it. */
const digests = new WeakMap<OfferedTool, string>();

/** SHA-256 (hex) over the canonical JSON of the definition; a field that is not offered is left out. */
export function digestOfDefinition(tool: OfferedTool): string {
  const known = digests.get(tool);
  if (known !== undefined) return known;
  const fields = DEFINITION_FIELDS.flatMap((field) => (tool[field] === undefined ? [] : [[field, tool[field]]]));
  const digest = digestOfJson(Object.fromEntries(fields));
  digests.set(tool, digest);
  return digest;
}

/** Digits of the definition digest that a ref bears. */
export const REF_DIGITS = 12;

/** `server/tool@<first 12 hex digits of the definition digest>` */
export function mcpRef(server: string, tool: OfferedTool): ToolRef {
  return ToolRef.parse(`${server}/${tool.name}@${digestOfDefinition(tool).slice(0, REF_DIGITS)}`);
}

/** What an approval of this tool should be: the ref with all digits of the digest. */
export function wholeApproval(server: string, tool: OfferedTool): string {
  return `${server}/${tool.name}@${digestOfDefinition(tool)}`;
}

/** A name that a skill or an approval uses for a tool of a server; `digits` is absent when any definition will do. */
export type McpToolName = { readonly server: string; readonly tool: string; readonly digits?: string | undefined };

const MCP_NAME = /^([A-Za-z0-9_.-]{1,128})\/([A-Za-z0-9_.-]{1,128})(?:@([0-9a-f]{12}))?$/;

/** Undefined when the text names no tool of a server. */
export function parseMcpToolName(text: string): McpToolName | undefined {
  const match = MCP_NAME.exec(text);
  if (match === null) return undefined;
  const [, server = "", tool = "", digits] = match;
  return { server, tool, digits };
}
