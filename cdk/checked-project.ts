import { type Outcome, refuse, succeed, type Violation } from "../functions/contract/fault.ts";
import { reservedServerNames } from "../functions/contract/mcp-server.ts";
import { OperatorSettings } from "../functions/contract/settings.ts";
import { parseDeploySettings } from "./deploy-settings.ts";
import { type DeclaredServers, findServers, type ServersSource } from "./mcp-servers.ts";
import { findSkills, type VerifiedSkills } from "./verified-skills.ts";

/** All that an operator decides, checked together: who puts one mistake right should not find the next one after it. */

export type ProjectSource = {
  /** As the operator wrote them. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Directories that hold repositories beside `pins.json`. */
  readonly skills: readonly string[];
  readonly servers: ServersSource;
  /** What was found wrong before. */
  readonly violations?: readonly Violation[];
};

export type CheckedProject = {
  readonly settings: OperatorSettings;
  readonly skills: VerifiedSkills;
  readonly servers: DeclaredServers;
};

/** A refusal lists every mistake of every kind: settings, skills by the name of the file, servers. */
export function checkProject({ settings, skills, servers, violations = [] }: ProjectSource): Outcome<CheckedProject> {
  const repositories = OperatorSettings.shape.repositories.safeParse(settings.repositories).data;
  const found = findSkills({ roots: skills, repositories });
  const declared = findServers(servers, { reserved: reservedServerNames(found.names) });
  const parsed = parseDeploySettings(settings, { refs: found.refs, servers: declared.declared });
  const all: readonly Violation[] = [
    ...violations,
    ...(parsed.ok ? [] : parsed.fault.violations),
    ...found.problems.map((message) => ({ path: "/skills", message })),
    ...declared.problems,
  ];
  if (parsed.ok && all.length === 0) return succeed({ settings: parsed.value, skills: found, servers: declared });
  const lines = all.map(({ path, message }) => `  ${path}: ${message}`).join("\n");
  return refuse("REQUEST_INVALID", `this cannot be deployed:\n${lines}`, { violations: all });
}
