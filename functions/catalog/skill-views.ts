import type { SkillDetail, SkillSummary } from "../contract/catalog.ts";
import { parseMcpToolName } from "../contract/offered-tool.ts";
import type { Skill } from "../contract/skill.ts";
import { parseToolRef } from "../contract/tool.ts";
import { type Catalog, findSkill } from "./catalog.ts";
import type { SkillRefreshResult } from "./refresh-result.ts";
import type { ToolUse } from "./skill-registry.ts";

/** The skills, approved or not: reading about a skill is no permission to call it. */

export function toSkillSummaries(catalog: Catalog): readonly SkillSummary[] {
  return catalog.skills.list().map((skill) => toSummary(skill, catalog));
}

/** Throws `SKILL_NOT_FOUND` for an unknown name, `REPOSITORY_REFUSED` for one of a repository that is left out. */
export function toSkillDetail(name: string, catalog: Catalog): SkillDetail {
  const skill = findSkill(name, catalog);
  const { uses, problems } = catalog.skills.resolve(name);
  const missing = uses
    .filter(({ ref }) => catalog.lookup(ref).state === "absent")
    .map(({ ref, via }) => `${via.join(" → ")}: ${ref}`);
  const { license, compatibility, callable } = skill;
  return {
    ...toSummary(skill, catalog),
    ...(license === undefined ? {} : { license }),
    ...(compatibility === undefined ? {} : { compatibility }),
    metadata: Object.fromEntries(skill.metadata),
    instructions: skill.instructions,
    ...(callable === undefined ? {} : { input_schema: callable.inputSchema }),
    files: skill.files.map(({ path, sha256, size }) => ({ path, sha256, size })),
    includes: [...skill.includes],
    tool_set: uses.map((use) => toToolUse(use, name, catalog)),
    problems: [...problems, ...missing],
    last_refresh: toLastRefresh(name, catalog.lastRefresh),
  };
}

function toToolUse({ ref, via }: ToolUse, skill: string, catalog: Catalog): SkillDetail["tool_set"][number] {
  const found = catalog.lookup(ref);
  const served = (catalog.served.get(skill) ?? []).find((each) => each === ref || each.startsWith(`${ref}@`));
  const exact = found.state === "present" ? (found.ref ?? parseToolRef(ref)) : (served ?? parseToolRef(ref));
  const origin = parseMcpToolName(ref)?.server ?? (exact && catalog.tools.get(exact)?.spec.origin);
  return {
    ref,
    via: [...via],
    origin: origin ?? null,
    state: found.state,
    exact_ref: exact ?? null,
    approved: exact !== undefined && catalog.policy.approved.has(exact),
    served: served !== undefined,
  };
}

function toLastRefresh(name: string, { failed, skipped }: SkillRefreshResult): SkillDetail["last_refresh"] {
  const message = failed.get(name);
  if (message !== undefined) return { outcome: "failed", message };
  return { outcome: skipped.includes(name) ? "skipped" : "refreshed" };
}

function toSummary({ name, description, origin, digest, callable }: Skill, catalog: Catalog): SkillSummary {
  const ref = callable === undefined ? {} : { ref: callable.ref };
  return {
    name,
    description,
    origin,
    digest,
    ...ref,
    approved: callable !== undefined && isApproved(callable.ref, catalog),
  };
}

function isApproved(ref: string, { policy }: Catalog): boolean {
  const parsed = parseToolRef(ref);
  return parsed !== undefined && policy.approved.has(parsed);
}
