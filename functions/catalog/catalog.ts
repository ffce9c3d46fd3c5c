import { loadPolicy, type OperatorPolicy } from "../broker/operator-policy.ts";
import { type RegisteredTool, ToolRegistry } from "../broker/tool-registry.ts";
import type { HealthReport, RepositoryHealth } from "../contract/catalog.ts";
import { Fault, SkillError } from "../contract/fault.ts";
import type { MCPServerConfig } from "../contract/mcp-server.ts";
import type { Log } from "../contract/ports.ts";
import type { CatalogRecord } from "../contract/refresh.ts";
import type { Skill } from "../contract/skill.ts";
import { parseToolRef, type ToolRef } from "../contract/tool.ts";
import type { RepositoryStatus } from "../repository/load.ts";
import { BUNDLED_SPECS, BUNDLED_TOOLS } from "./bundled-tools.ts";
import { installSkillRepository } from "./install.ts";
import {
  type Age,
  createLookup,
  type LendingServer,
  toLendingServers,
  toLentTools,
  toServerHealth,
} from "./lent-tools.ts";
import type { SkillRefreshResult } from "./refresh-result.ts";
import { type ServedTools, toServedTools } from "./served-tools.ts";
import { SkillRegistry, type ToolLookup } from "./skill-registry.ts";

/**
 * Where skills, tools and policy meet. What was deployed is installed once; each published refresh then makes a catalog
 * of it: everything a job may see, fixed for as long as the job runs.
 */

/** What was deployed. A repository that is refused, at loading or because one of its refs is taken, says why. */
export type Installation = {
  readonly tools: ReadonlyMap<ToolRef, RegisteredTool>;
  readonly policy: OperatorPolicy;
  readonly repositories: readonly RepositoryStatus[];
  readonly skills: SkillRegistry;
  readonly servers: readonly MCPServerConfig[];
};

export type Catalog = Omit<Installation, "servers"> & {
  /** By name, every declared one. */
  readonly servers: ReadonlyMap<string, LendingServer>;
  readonly lookup: ToolLookup;
  /** 0 is the catalog that was deployed; each published refresh adds one. */
  readonly generation: number;
  /** What was published; undefined for generation 0. */
  readonly record: CatalogRecord | undefined;
  /** What the tool sets came to, looked up against {@link tools}. */
  readonly lastRefresh: SkillRefreshResult;
  readonly served: ServedTools;
};

export type InstallationSource = {
  readonly repositories: readonly RepositoryStatus[];
  /** The operator's approvals: exact refs and bundles. */
  readonly approvals: readonly string[];
  readonly servers: readonly MCPServerConfig[];
  readonly log: Log;
};

/** Throws `REQUEST_INVALID` when the approvals cannot be read; a refused repository is logged, not thrown. */
export function installAll({ repositories: loaded, approvals, servers, log }: InstallationSource): Installation {
  const policy = loadPolicy(approvals, BUNDLED_SPECS);
  const registry = new ToolRegistry();
  registry.register(BUNDLED_TOOLS);
  const repositories = loaded.map((repository) => install(registry, repository));
  for (const repository of repositories) if (repository.status === "refused") logRefusal(log, repository);
  const tools = registry.snapshot();
  const absent = [...policy.approved].filter((ref) => !ref.includes("/") && !tools.has(ref));
  if (absent.length > 0) log("warn", "approved tools that nothing provides", { refs: absent.join(" ") });
  const verified = repositories.flatMap((each) => (each.status === "loaded" ? each.skills : []));
  return { tools, policy, repositories, skills: new SkillRegistry({ skills: verified, log }), servers };
}

/** The catalog that a published record makes of an installation; without a record, the one that was deployed. */
export function toCatalog(installed: Installation, record: CatalogRecord | undefined, age: Age): Catalog {
  const servers = toLendingServers({ declared: installed.servers, record, policy: installed.policy }, age);
  const tools = new Map([...installed.tools, ...toLentTools(servers).map((tool) => [tool.spec.ref, tool] as const)]);
  const lookup = createLookup(installed.tools, servers);
  const skills = installed.skills.withLookup(lookup);
  const lastRefresh = skills.refreshAll();
  const served = toServedTools({ skills, lookup, result: lastRefresh, previous: toPrevious(record) });
  return {
    ...installed,
    tools,
    servers,
    lookup,
    skills,
    lastRefresh,
    served,
    record,
    generation: record?.generation ?? 0,
  };
}

function toPrevious(record: CatalogRecord | undefined): ServedTools {
  return new Map(record?.skills.map(({ name, tools }) => [name, tools.flatMap((ref) => parseToolRef(ref) ?? [])]));
}

/** Names of the repositories that are left out. */
export function refusedRepositories({ repositories }: Pick<Catalog, "repositories">): readonly string[] {
  return repositories.flatMap(({ name, status }) => (status === "refused" ? [name] : []));
}

/**
 * The skill of that name. Throws `SKILL_NOT_FOUND`, or `REPOSITORY_REFUSED` when its repository is left out: that is
 * not the caller's mistake.
 */
export function findSkill(name: string, catalog: Catalog): Skill {
  const repository = name.split("/")[0] ?? "";
  if (!refusedRepositories(catalog).includes(repository)) return catalog.skills.get(name);
  throw new SkillError(`the repository "${repository}" is refused, so ${JSON.stringify(name)} is not installed`);
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

/**
 * `degraded` as soon as one repository is refused or one server's list is not fresh: what was approved is not all
 * there.
 */
export function toHealthReport({ repositories, servers, record, generation }: Catalog, now: number): HealthReport {
  const refused = repositories.some(({ status }) => status === "refused");
  const lending = [...servers.values()];
  return {
    status: refused || lending.some(({ readable }) => !readable) ? "degraded" : "ok",
    repository: repositories.map(toRepositoryHealth),
    servers: lending.map((server) => toServerHealth(server, now)),
    catalog: { generation, refreshed_at: record?.refreshed_at ?? null },
  };
}

function toRepositoryHealth(repository: RepositoryStatus): RepositoryHealth {
  const { name, status } = repository;
  if (repository.status === "loaded")
    return { name, status, skills: repository.skills.length, digest: repository.digest };
  return { name, status, skills: 0, digest: null, reason: repository.reasons.join("; ") };
}
