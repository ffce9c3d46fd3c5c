import * as z from "zod";

/**
 * What can be called, and by which exact name. A ref binds an approval to one version: `status_update@1` for what
 * ships with the service, `server/tool@<12 hex digits of the definition digest>` for a tool that an MCP server lends.
 */

const LOCAL_REF = "[a-z][a-z0-9_]{0,63}@[0-9A-Za-z][0-9A-Za-z.-]{0,31}";
const MCP_REF = "[A-Za-z0-9_.-]{1,128}\\/[A-Za-z0-9_.-]{1,128}@[0-9a-f]{12}";

/** Exact name of a callable. */
export const ToolRef = z
  .string()
  .regex(new RegExp(`^(?:${LOCAL_REF}|${MCP_REF})$`), 'must be an exact ref such as "create_pdf@1"')
  .brand<"ToolRef">()
  .meta({ id: "ToolRef", description: "exact name of a callable, id@version", examples: ["create_pdf@1"] });
export type ToolRef = z.infer<typeof ToolRef>;

/** Undefined when the text is not a ref. */
export function parseToolRef(text: string): ToolRef | undefined {
  const parsed = ToolRef.safeParse(text);
  return parsed.success ? parsed.data : undefined;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * A registered callable. `kind: "skill"` answers with an artifact. `origin` is the namespace it came from:
 * `builtin`, the name of an operator's repository, or the name of an MCP server.
 */
export type ToolSpec = {
  readonly ref: ToolRef;
  readonly id: string;
  readonly version: string;
  readonly kind: "tool" | "skill";
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject | undefined;
  readonly origin: string;
  /** SHA-256 (hex) of what the approval is about: the skill's files, or the definition for what has no files. */
  readonly digest: string;
};

/** The origin of what is written in, or shipped with, skillbroker itself. */
export const BUILTIN_ORIGIN = "builtin";

/** The bundle of the tools that are written in the source: a word in the operator's approvals. */
export const LOCAL_BUNDLE = "local";

/** True when the text of the spec is not ours: it is fenced before a model sees it. */
export function thirdParty(spec: Pick<ToolSpec, "origin">): boolean {
  return spec.origin !== BUILTIN_ORIGIN;
}
