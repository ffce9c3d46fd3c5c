import type { RegisteredTool, ToolRegistry } from "../broker/tool-registry.ts";
import type { Skill } from "../contract/skill.ts";

/**
 * Turns verified skills into ordinary registered tools: same registry, same broker, same policy as what is written in
 * the source. There is no second kind of skill.
 */

/** Undefined for a skill of instructions only. Nothing is added to what the skill says of itself. */
export function toRegisteredTool(skill: Skill): RegisteredTool | undefined {
  const { callable, description, origin, digest } = skill;
  if (callable === undefined) return undefined;
  const { ref, id, version, inputSchema, outputSchema } = callable;
  return {
    spec: { ref, id, version, kind: "skill", description, inputSchema, outputSchema, origin, digest },
    binding: { handler: callable.handler, skill: callable },
  };
}

/**
 * Registers the callable skills of one repository. Throws when a ref is already taken and leaves the registry as it
 * was. Approval is not decided here: the operator policy does that.
 */
export function installSkillRepository(registry: ToolRegistry, skills: readonly Skill[]): readonly RegisteredTool[] {
  const tools = skills.flatMap((skill) => toRegisteredTool(skill) ?? []);
  registry.register(tools);
  return tools;
}
