import { Fault } from "../contract/fault.ts";
import { parseToolRef, type ToolRef, type ToolSpec } from "../contract/tool.ts";

/**
 * What the operator approved, by exact ref. A bundle is shorthand for refs written in the source; nothing read from a
 * directory or from a server is ever in one, so a file dropped on disk cannot join what one word approves.
 */
export type OperatorPolicy = { readonly approved: ReadonlySet<ToolRef> };

/** The bundle of the tools that are written in the source. */
export const LOCAL_BUNDLE = "local";

/**
 * Reads the operator's approvals: exact refs, or `local`, which expands over `bundled` and nothing else. Throws a
 * `REQUEST_INVALID` that names every entry that is neither, because a misspelt approval must not pass for a narrow one.
 */
export function loadPolicy(approvals: readonly string[], bundled: readonly ToolSpec[]): OperatorPolicy {
  const approved = new Set<ToolRef>();
  const unreadable: string[] = [];
  for (const approval of approvals) {
    if (approval === LOCAL_BUNDLE) {
      for (const { ref } of bundled) approved.add(ref);
      continue;
    }
    const ref = parseToolRef(approval);
    if (ref === undefined) unreadable.push(approval);
    else approved.add(ref);
  }
  if (unreadable.length > 0) {
    const named = unreadable.map((entry) => JSON.stringify(entry)).join(", ");
    throw new Fault(
      "REQUEST_INVALID",
      `approved tools: ${named} is neither a bundle ("${LOCAL_BUNDLE}") nor an exact id@version`,
    );
  }
  return { approved };
}

/** The specs that the policy approves, by exact ref. */
export function permittedSpecs(policy: OperatorPolicy, specs: readonly ToolSpec[]): readonly ToolSpec[] {
  return specs.filter(({ ref }) => policy.approved.has(ref));
}
