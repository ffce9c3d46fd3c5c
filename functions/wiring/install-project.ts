import { type Installation, installAll } from "../catalog/catalog.ts";
import { orThrow } from "../contract/fault.ts";
import { parseMcpServers, reservedServerNames } from "../contract/mcp-server.ts";
import type { Log } from "../contract/ports.ts";
import { SKILL_HANDLERS } from "../handlers/table.ts";
import { loadRepositories } from "../repository/load.ts";
import type { Pins } from "../repository/pins.ts";

/** What was deployed, read and verified once. */

export type ProjectSource = {
  /** Directory that holds the repositories. */
  readonly skillsRoot: string;
  /** Throws `SkillError` when the pins cannot be read; every repository is then refused, the service stays up. */
  readonly pins: () => Pins;
  /** Names of the repositories wanted; undefined for all. */
  readonly repositories?: readonly string[] | undefined;
  readonly approvals: readonly string[];
  /** What `mcp.json` holds, parsed as JSON. */
  readonly mcp: unknown;
  readonly log: Log;
};

/** Throws only for a bad deploy: approvals or servers that cannot be read. */
export function installProject({
  skillsRoot,
  pins,
  repositories: wanted,
  approvals,
  mcp,
  log,
}: ProjectSource): Installation {
  const repositories = loadRepositories({ root: skillsRoot, pins, handlers: SKILL_HANDLERS, wanted });
  const servers = orThrow(
    parseMcpServers(mcp, { reserved: reservedServerNames(repositories.map(({ name }) => name)) }),
  );
  return installAll({ repositories, approvals, servers, log });
}
