import { Fault } from "../contract/fault.ts";
import { REF_DIGITS } from "../contract/offered-tool.ts";
import { LOCAL_BUNDLE, parseToolRef, type ToolRef, type ToolSpec } from "../contract/tool.ts";

/**
 * What the operator approved, by exact ref. A bundle is shorthand for refs written in the source; nothing read from a
 * directory or from a server is ever in one, so a file dropped on disk cannot join what one word approves.
 */
export type OperatorPolicy = {
  readonly approved: ReadonlySet<ToolRef>;
  /**
   * Approved tools of MCP servers whose approval names the whole digest of the definition. Who writes a definition can
   * write two with the same twelve digits in minutes, so the digits of a ref tell definitions apart and bind nobody.
   */
  readonly digests: ReadonlyMap<ToolRef, string>;
};

/** `server/tool@` and the whole digest: what an approval of a lent tool should be. */
const WHOLE_APPROVAL = /^([A-Za-z0-9_.-]{1,128}\/[A-Za-z0-9_.-]{1,128}@[0-9a-f]{12})([0-9a-f]{52})$/;

/**
 * Reads the operator's approvals: exact refs, for a lent tool with all 64 digits of the digest in place of twelve, or
 * `local`, which expands over `bundled` and nothing else. Throws a
 * `REQUEST_INVALID` that names every entry that is neither, because a misspelt approval must not pass for a narrow one.
 */
export function loadPolicy(approvals: readonly string[], bundled: readonly ToolSpec[]): OperatorPolicy {
  const approved = new Set<ToolRef>();
  const digests = new Map<ToolRef, string>();
  const unreadable: string[] = [];
  for (const approval of approvals) {
    if (approval === LOCAL_BUNDLE) {
      for (const { ref } of bundled) approved.add(ref);
      continue;
    }
    const [, short = approval, rest] = WHOLE_APPROVAL.exec(approval) ?? [];
    const ref = parseToolRef(short);
    if (ref === undefined) {
      unreadable.push(approval);
      continue;
    }
    approved.add(ref);
    if (rest !== undefined) digests.set(ref, short.slice(-REF_DIGITS) + rest);
  }
  if (unreadable.length > 0) {
    const named = unreadable.map((entry) => JSON.stringify(entry)).join(", ");
    throw new Fault(
      "REQUEST_INVALID",
      `approved tools: ${named} is neither a bundle ("${LOCAL_BUNDLE}") nor an exact id@version`,
    );
  }
  return { approved, digests };
}

/** The specs that the policy approves, by exact ref. */
export function permittedSpecs(policy: OperatorPolicy, specs: readonly ToolSpec[]): readonly ToolSpec[] {
  return specs.filter(({ ref }) => policy.approved.has(ref));
}
