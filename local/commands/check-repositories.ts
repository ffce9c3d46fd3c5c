import { createArgumentChecker } from "../../functions/broker/argument-schema.ts";
import { installAll } from "../../functions/catalog/catalog.ts";
import { toRegisteredTool } from "../../functions/catalog/install.ts";
import { Fault } from "../../functions/contract/fault.ts";
import { toVisible } from "../../functions/contract/printable.ts";
import type { Skill } from "../../functions/contract/skill.ts";
import { findHandlerProblems, SKILL_HANDLERS } from "../../functions/handlers/table.ts";
import { loadRepositories } from "../../functions/repository/load.ts";
import type { Pins } from "../../functions/repository/pins.ts";
import { readTree, type Tree } from "../../functions/repository/tree.ts";

/**
 * Everything that would refuse a repository with these pins, including what a cold start leaves to the first call:
 * whether every argument schema can be compiled, every template be filled and every ref be installed.
 */
export async function findRefusals(root: string, pins: Pins): Promise<readonly string[]> {
  const statuses = loadRepositories({ root, pins: () => pins, handlers: SKILL_HANDLERS });
  const refusals = statuses.flatMap((status) => (status.status === "refused" ? status.reasons : []));
  const { repositories, skills } = installAll({
    repositories: statuses,
    approvals: [],
    servers: [],
    log: () => undefined,
  });
  const installed = repositories.flatMap((each) => (each.status === "refused" ? each.reasons : []));
  const problems = [...findUnusableTemplates(skills.list()), ...(await findUnusableSchemas(skills.list()))];
  return [...new Set([...refusals, ...installed, ...problems])];
}

function findUnusableTemplates(skills: readonly Skill[]): readonly string[] {
  return skills.flatMap(({ name, callable }) =>
    callable === undefined ? [] : findHandlerProblems(callable).map((problem) => `${name}/tool.json: ${problem}`),
  );
}

async function findUnusableSchemas(skills: readonly Skill[]): Promise<readonly string[]> {
  const check = createArgumentChecker();
  const problems: string[] = [];
  for (const skill of skills) {
    const tool = toRegisteredTool(skill);
    const checked = tool === undefined ? undefined : await check(tool.spec, {});
    if (checked?.ok !== false || checked.fault.code !== "TOOL_UNAVAILABLE") continue;
    const cause = checked.fault.cause instanceof Error ? checked.fault.cause.message : "unknown reason";
    problems.push(`${skill.name}/tool.json: /input_schema cannot be used: ${toVisible(cause)}`);
  }
  return problems;
}

/** Throws a `REPOSITORY_REFUSED` in place of a system error. */
export function readTreeAt(root: string): Tree {
  try {
    return readTree(root);
  } catch (error) {
    const message = `${root} cannot be read; give the directory that holds pins.json`;
    throw new Fault("REPOSITORY_REFUSED", message, { cause: error });
  }
}
