import { toVisible } from "../contract/printable.ts";
import type { Skill } from "../contract/skill.ts";
import type { RepositoryStatus } from "./load.ts";

/** What an operator reads before approving: every ref, what it says of itself, and which bytes it is. */

/** Plain text; control and direction characters are shown as escapes, so that a description cannot hide itself. */
export function describeSkillRepository(repositories: readonly RepositoryStatus[]): string {
  if (repositories.length === 0) return "No skill repository is configured.\n";
  return repositories.map(describeRepository).join("\n");
}

function describeRepository(repository: RepositoryStatus): string {
  if (repository.status === "refused") {
    const reasons = repository.reasons.map((reason) => `  - ${toVisible(reason)}`).join("\n");
    return `${repository.name}: REFUSED, none of its skills is installed\n${reasons}\n`;
  }
  const heading = `${repository.name}: ${repository.skills.length} skills, digest ${repository.digest}\n`;
  return heading + repository.skills.map(describeSkill).join("");
}

function describeSkill(skill: Skill): string {
  const { callable } = skill;
  const lines = [
    `\n  ${skill.name}`,
    `    ref        ${callable === undefined ? "none: instructions only, cannot be called" : callable.ref}`,
    `    says       ${toVisible(skill.description)}`,
    ...(callable === undefined
      ? []
      : [`    handler    ${callable.handler}`, `    arguments  ${argumentNames(callable.inputSchema)}`]),
    ...(skill.toolRefs.length === 0 ? [] : [`    uses       ${skill.toolRefs.map(toVisible).join(" ")}`]),
    ...(skill.includes.length === 0 ? [] : [`    includes   ${skill.includes.map(toVisible).join(" ")}`]),
    `    digest     ${skill.digest}`,
    ...skill.files.map(
      ({ path, size, sha256 }) => `      ${sha256.slice(0, 12)}  ${String(size).padStart(7)}  ${path}`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function argumentNames(schema: Readonly<Record<string, unknown>>): string {
  const { properties, required } = schema;
  const needed = new Set(Array.isArray(required) ? required : []);
  const names = typeof properties === "object" && properties !== null ? Object.keys(properties) : [];
  return names.map((name) => (needed.has(name) ? toVisible(name) : `[${toVisible(name)}]`)).join(" ") || "none";
}
