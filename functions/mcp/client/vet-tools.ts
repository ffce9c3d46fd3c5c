import * as z from "zod";
import { toVisible } from "../../contract/printable.ts";
import { ToolSchema } from "../../contract/tool-schema.ts";
import { toViolations } from "../../contract/violations.ts";

/**
 * A server's list of tools, each judged by itself: one that is broken is set aside with its reason, and the others stay.
 * The same list gives the same answer in any order.
 */

/** As a server describes it (MCP 2026-07-28, `tools/list`). */
const OfferedTool = z.object({
  name: z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, "a name of 1 to 128 of A-Z a-z 0-9 _ . - wanted"),
  title: z.string().optional(),
  description: z.string().default(""),
  inputSchema: ToolSchema,
  outputSchema: ToolSchema.optional(),
  annotations: z.record(z.string(), z.unknown()).optional(),
});
export type OfferedTool = z.infer<typeof OfferedTool>;

export type QuarantinedTool = {
  /** As offered, made visible; `(unnamed)` when it is no text. */
  readonly name: string;
  readonly reason: string;
};

export type VettedTools = {
  readonly available: readonly OfferedTool[];
  readonly quarantined: readonly QuarantinedTool[];
};

const MAX_SHOWN_NAME = 128;

/** Both lists by name. Two tools of one name are both set aside: which of them would be meant cannot be told. */
export function vetTools(offered: readonly unknown[]): VettedTools {
  const judged = offered.map((tool) => ({ name: nameOf(tool), parsed: OfferedTool.safeParse(tool) }));
  const counts = new Map<string, number>();
  for (const { name } of judged) counts.set(name, (counts.get(name) ?? 0) + 1);
  const available: OfferedTool[] = [];
  const quarantined: QuarantinedTool[] = [];
  for (const { name, parsed } of judged) {
    const twins = counts.get(name) ?? 0;
    if (!parsed.success) quarantined.push({ name, reason: reasonOf(parsed.error) });
    else if (twins > 1) quarantined.push({ name, reason: `the name stands ${twins} times in the list` });
    else available.push(parsed.data);
  }
  return { available: available.toSorted(byName), quarantined: quarantined.toSorted(byName) };
}

function nameOf(tool: unknown): string {
  const name = typeof tool === "object" && tool !== null && "name" in tool ? tool.name : undefined;
  return typeof name === "string" ? toVisible(name.slice(0, MAX_SHOWN_NAME)) : "(unnamed)";
}

function reasonOf(error: z.ZodError): string {
  return toViolations(error)
    .map(({ path, message }) => `${path || "/"}: ${message}`)
    .join("; ");
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
