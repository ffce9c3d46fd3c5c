import { createArgumentChecker } from "../../functions/broker/argument-schema.ts";
import { toRegisteredTool } from "../../functions/catalog/install.ts";
import { SKILL_HANDLERS } from "../../functions/handlers/table.ts";
import { loadRepositories } from "../../functions/repository/load.ts";
import type { Pins } from "../../functions/repository/pins.ts";

/**
 * Everything that would refuse a repository with these pins, including what a cold start leaves to the first call:
 * whether every argument schema can be compiled.
 */
export async function findRefusals(root: string, pins: Pins): Promise<readonly string[]> {
  const statuses = loadRepositories({ root, pins: () => pins, handlers: SKILL_HANDLERS });
  const refusals = statuses.flatMap((status) => (status.status === "refused" ? status.reasons : []));
  const check = createArgumentChecker();
  for (const status of statuses) {
    for (const skill of status.status === "loaded" ? status.skills : []) {
      const tool = toRegisteredTool(skill);
      const checked = tool === undefined ? undefined : await check(tool.spec, {});
      if (checked?.ok === false && checked.fault.code === "TOOL_UNAVAILABLE") {
        const cause = checked.fault.cause instanceof Error ? checked.fault.cause.message : "unknown reason";
        refusals.push(`${skill.name}/tool.json: /input_schema cannot be used: ${cause}`);
      }
    }
  }
  return refusals;
}
