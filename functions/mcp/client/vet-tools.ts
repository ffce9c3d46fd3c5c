import type * as z from "zod";
import { OfferedTool, type QuarantinedTool } from "../../contract/offered-tool.ts";
import type { ToolListing } from "../../contract/ports.ts";
import { toVisible } from "../../contract/printable.ts";
import { firstCodePoints, utf8ByteCount } from "../../contract/text.ts";
import { toViolations } from "../../contract/violations.ts";
import { findHeaderProblem } from "./argument-headers.ts";
import { findUnkeepable, withMendedText } from "./plain-json.ts";

/**
 * A server's list of tools, each judged by itself: one that is broken is set aside with its reason, and the others
 * stay. The same list gives the same answer in any order.
 */

export type DefinitionLimits = {
  /** Bytes of one definition as JSON: it is stored, compared and shown whole. */
  readonly maxBytes: number;
  /** Arrays and objects inside one another. */
  readonly maxDepth: number;
};

export const DEFAULT_DEFINITION_LIMITS: DefinitionLimits = { maxBytes: 64 * 1024, maxDepth: 64 };

export type VettedTools = Pick<ToolListing, "tools" | "quarantined">;

const MAX_SHOWN_NAME = 128;
const MAX_REASON_CODE_POINTS = 500;

type Judged = { readonly name: string } & ({ readonly tool: OfferedTool } | { readonly reason: string });

export type VetOptions = {
  readonly limits: DefinitionLimits;
  /** Takes out what was sent to the server in confidence: a list is shown to more people than the credential. */
  readonly redact: (text: string) => string;
  /** True when arguments will travel in headers as well, where a definition asks for it. */
  readonly mirrorsArguments: boolean;
};

/** Both lists by name. Two tools of one name are both set aside: which of them would be meant cannot be told. */
export function vetTools(offered: readonly unknown[], options: VetOptions): VettedTools {
  const judged = offered.map((tool) => judge(tool, options));
  const counts = new Map<string, number>();
  for (const { name } of judged) counts.set(name, (counts.get(name) ?? 0) + 1);
  const tools: OfferedTool[] = [];
  const quarantined: QuarantinedTool[] = [];
  for (const { name, ...verdict } of judged) {
    const twins = counts.get(name) ?? 0;
    if ("reason" in verdict) quarantined.push({ name, reason: verdict.reason });
    else if (twins > 1) quarantined.push({ name, reason: `the name stands ${twins} times in the list` });
    else tools.push(verdict.tool);
  }
  return { tools: tools.toSorted(byName), quarantined: quarantined.toSorted(byName) };
}

/** What cannot be kept is looked for first: nothing after it may recurse into a definition of unknown depth. */
function judge(offered: unknown, { limits: { maxBytes, maxDepth }, redact, mirrorsArguments }: VetOptions): Judged {
  const name = nameOf(offered, redact);
  const unkeepable = findUnkeepable(offered, { maxDepth });
  if (unkeepable !== undefined) return { name, reason: unkeepable };
  const parsed = OfferedTool.safeParse(offered);
  if (!parsed.success) return { name, reason: reasonOf(parsed.error, redact) };
  const json = JSON.stringify(parsed.data);
  // A text before JSON escapes what stands in it, a number as it is written.
  const shown = redact(JSON.stringify(withMendedText(parsed.data, redact)));
  if (shown !== json) return { name, reason: "the definition holds a value that was sent to the server" };
  const problem = mirrorsArguments ? findHeaderProblem(parsed.data.inputSchema) : undefined;
  if (problem !== undefined) return { name, reason: toReason(`/inputSchema${problem.path}: ${problem.message}`) };
  const bytes = utf8ByteCount(json);
  if (bytes > maxBytes) return { name, reason: `the definition has ${bytes} bytes, at most ${maxBytes} are allowed` };
  return { name, tool: parsed.data };
}

function nameOf(tool: unknown, redact: VetOptions["redact"]): string {
  const name = typeof tool === "object" && tool !== null && "name" in tool ? tool.name : undefined;
  return typeof name === "string" ? toVisible(redact(name).slice(0, MAX_SHOWN_NAME)) : "(unnamed)";
}

function reasonOf(error: z.ZodError, redact: VetOptions["redact"]): string {
  const violations = toViolations(error).map(({ path, message }) => `${path || "/"}: ${message}`);
  return toReason(redact(violations.join("; ")));
}

function toReason(text: string): string {
  return toVisible(firstCodePoints(text, MAX_REASON_CODE_POINTS));
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
