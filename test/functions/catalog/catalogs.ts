import { type Catalog, installAll, toCatalog } from "../../../functions/catalog/catalog.ts";
import type { Log } from "../../../functions/contract/ports.ts";
import type { RepositoryStatus } from "../../../functions/repository/load.ts";
import { type Files, load, pinnedRoot, SHIPPED_SKILLS, skillMd, toolJson } from "../repository/skills-on-disk.ts";

/** Discards what it is told. */
export const silent: Log = () => undefined;

/** The skills that the project ships, with these approvals. */
export function shippedCatalog(approvals: readonly string[], log: Log = silent): Catalog {
  return deployedCatalog(load(SHIPPED_SKILLS), approvals, log);
}

/** A catalog of repositories that are written for the test, pinned and loaded as any other. */
export function catalogOf(files: Files, approvals: readonly string[] = ["local"], log: Log = silent): Catalog {
  return deployedCatalog(load(pinnedRoot(files)), approvals, log);
}

/** Generation 0, without servers. */
export function deployedCatalog(
  repositories: readonly RepositoryStatus[],
  approvals: readonly string[],
  log: Log = silent,
): Catalog {
  const installed = installAll({ repositories, approvals, servers: [], log });
  return toCatalog(installed, undefined, { now: 0, maxListAgeMs: 0 });
}

/** A skill of instructions only: `acme/one` with these includes and tools. */
export function instructions(
  name: string,
  { includes = [], tools = [] }: { readonly includes?: readonly string[]; readonly tools?: readonly string[] },
): Files {
  const [, directory = ""] = name.split("/");
  const header = [
    ...(tools.length > 0 ? [`allowed-tools: ${tools.join(" ")}`] : []),
    ...(includes.length > 0 ? ["metadata:", `  includes: ${includes.join(" ")}`] : []),
  ];
  return { [`${name}/SKILL.md`]: skillMd(directory, ...header) };
}

/** A skill with a tool of its own, `id@1`. */
export function callable(name: string, id: string, changes: Readonly<Record<string, unknown>> = {}): Files {
  return { ...instructions(name, {}), [`${name}/tool.json`]: toolJson({ id, ...changes }) };
}
