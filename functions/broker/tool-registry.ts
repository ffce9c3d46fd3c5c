import { Fault } from "../contract/fault.ts";
import type { CallableSkill } from "../contract/skill.ts";
import type { ToolRef, ToolSpec } from "../contract/tool.ts";

/**
 * What runs a tool: a handler of the fixed table, with the skill that names it, or the MCP server that lends it, which
 * knows it by the `tool`'s name.
 */
export type Binding = HandlerBinding | LentBinding;
export type HandlerBinding = { readonly handler: string; readonly skill: CallableSkill | undefined };
export type LentBinding = { readonly server: string; readonly tool: string };

export type RegisteredTool = { readonly spec: ToolSpec; readonly binding: Binding };

/**
 * Which specs exist and what runs them. A broker works on a snapshot, so that a job's capabilities cannot change
 * under it.
 */
export class ToolRegistry {
  readonly #tools = new Map<ToolRef, RegisteredTool>();

  /** All or none: throws `REPOSITORY_REFUSED` when a ref is taken, and leaves the registry as it was. */
  register(tools: readonly RegisteredTool[]): void {
    const added = new Set<ToolRef>();
    for (const { spec } of tools) {
      const taken =
        this.#tools.get(spec.ref) ??
        (added.has(spec.ref) ? tools.find((tool) => tool.spec.ref === spec.ref) : undefined);
      if (taken !== undefined) {
        throw new Fault(
          "REPOSITORY_REFUSED",
          `${spec.ref} of "${spec.origin}" is already taken by "${taken.spec.origin}"`,
        );
      }
      added.add(spec.ref);
    }
    for (const tool of tools) this.#tools.set(tool.spec.ref, tool);
  }

  snapshot(): ReadonlyMap<ToolRef, RegisteredTool> {
    return new Map(this.#tools);
  }
}
