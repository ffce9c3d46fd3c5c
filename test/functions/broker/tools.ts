import type { HandlerBinding, RegisteredTool } from "../../../functions/broker/tool-registry.ts";
import { ToolRef, type ToolSpec } from "../../../functions/contract/tool.ts";

/** A registered tool of this ref, with what the test is about. */
export function toolOf(ref: string, changes: Partial<ToolSpec> & Partial<HandlerBinding> = {}): RegisteredTool {
  const { handler = "echo", skill, ...spec } = changes;
  const [id = "", version = ""] = ref.split("@");
  return {
    spec: {
      ref: ToolRef.parse(ref),
      id,
      version,
      kind: "tool",
      description: `Does ${id}.`,
      inputSchema: { type: "object" },
      origin: "builtin",
      digest: "d".repeat(64),
      ...spec,
    },
    binding: { handler, skill },
  };
}
