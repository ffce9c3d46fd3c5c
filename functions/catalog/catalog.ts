import { loadPolicy, type OperatorPolicy } from "../broker/operator-policy.ts";
import { type RegisteredTool, ToolRegistry } from "../broker/tool-registry.ts";
import type { HealthReport, RepositoryHealth } from "../contract/catalog.ts";
import { Fault, SkillError } from "../contract/fault.ts";
import type { Log } from "../contract/ports.ts";
import type { Skill } from "../contract/skill.ts";
import { parseToolRef, type ToolRef } from "../contract/tool.ts";
import type { RepositoryStatus } from "../repository/load.ts";
import { BUNDLED_SPECS, BUNDLED_TOOLS } from "./bundled-tools.ts";
import { installSkillRepository } from "./install.ts";
import type { SkillRefreshResult } from "./refresh-result.ts";
import { SkillRegistry, type ToolLookup } from "./skill-registry.ts";

/**
 * Where skills, tools and policy meet: everything a job may see, fixed for as long as the job runs. A repository that
 * is refused, at loading or because one of its refs is taken, is left out and says why.
 */
export type Catalog = {
  readonly tools: ReadonlyMap<ToolRef, RegisteredTool>;
  readonly policy: OperatorPolicy;
  readonly skills: SkillRegistry;
  readonly repositories: readonly RepositoryStatus[];
  /** 0 is the catalog that was deployed; each published refresh adds one. */
  readonly generation: number;
  readonly refreshedAt: string | null;
  /** What the tool sets came to, looked up against {@link tools}. */
  readonly lastRefresh: SkillRefreshResult;
};

export type CatalogSource = {
  readonly repositories: readonly RepositoryStatus[];
  /** The operator's approvals: exact refs and bundles. */
  readonly approvals: readonly string[];
  readonly log: Log;
};

/** Throws `REQUEST_INVALID` when the approvals cannot be read; a refused repository is logged, not thrown. */
export function buildCatalog({ repositories: loaded, approvals, log }: CatalogSource): Catalog {
  const policy = loadPolicy(approvals, BUNDLED_SPECS);
  const registry = new ToolRegistry();
  registry.register(BUNDLED_TOOLS);
  const repositories = loaded.map((repository) => install(registry, repository));
  for (const repository of repositories) if (repository.status === "refused") logRefusal(log, repository);
  const tools = registry.snapshot();
  const absent = [...policy.approved].filter((ref) => !tools.has(ref));
  if (absent.length > 0) log("warn", "approved tools that nothing provides", { refs: absent.join(" ") });
  const verified = repositories.flatMap((each) => (each.status === "loaded" ? each.skills : []));
  const skills = new SkillRegistry({ skills: verified, lookup: toLookup(tools), log });
  const lastRefresh = skills.refreshAll();
  for (const [skill, reason] of lastRefresh.failed) log("warn", "skill has no whole tool set", { skill, reason });
  return { tools, policy, skills, repositories, generation: 0, refreshedAt: null, lastRefresh };
}

/** Names of the repositories that are left out. */
export function refusedRepositories({ repositories }: Pick<Catalog, "repositories">): readonly string[] {
  return repositories.flatMap(({ name, status }) => (status === "refused" ? [name] : []));
}

/**
 * The skill of that name. Throws `SKILL_NOT_FOUND`, or `REPOSITORY_REFUSED` when its repository is left out: that is not
 * the caller's mistake.
 */
export function findSkill(name: string, catalog: Catalog): Skill {
  const repository = name.split("/")[0] ?? "";
  if (!refusedRepositories(catalog).includes(repository)) return catalog.skills.get(name);
  throw new SkillError(`the repository "${repository}" is refused, so ${JSON.stringify(name)} is not installed`);
}

/** Everything installed is there; a tool of an MCP server is not, as long as none is connected. */
function toLookup(tools: ReadonlyMap<ToolRef, RegisteredTool>): ToolLookup {
  return (text) => {
    const ref = parseToolRef(text);
    return { state: ref !== undefined && tools.has(ref) ? "present" : "absent" };
  };
}

function install(registry: ToolRegistry, repository: RepositoryStatus): RepositoryStatus {
  if (repository.status === "refused") return repository;
  try {
    installSkillRepository(registry, repository.skills);
    return repository;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { status: "refused", name: repository.name, reasons: [error.message] };
  }
}

function logRefusal(log: Log, { name, reasons }: Extract<RepositoryStatus, { status: "refused" }>): void {
  log("error", "skill repository refused", {
    code: "REPOSITORY_REFUSED",
    repository: name,
    reasons: reasons.join("; "),
  });
}

/** `degraded` as soon as one repository is refused: what was approved is not all there. */
export function toHealthReport({ repositories, generation, refreshedAt }: Catalog): HealthReport {
  const refused = repositories.some(({ status }) => status === "refused");
  return {
    status: refused ? "degraded" : "ok",
    repository: repositories.map(toRepositoryHealth),
    catalog: { generation, refreshed_at: refreshedAt },
  };
}

function toRepositoryHealth(repository: RepositoryStatus): RepositoryHealth {
  const { name, status } = repository;
  if (repository.status === "loaded")
    return { name, status, skills: repository.skills.length, digest: repository.digest };
  return { name, status, skills: 0, digest: null, reason: repository.reasons.join("; ") };
}
