import { type Outcome, succeed, type Violation } from "../functions/contract/fault.ts";
import { reservedServerNames } from "../functions/contract/mcp-server.ts";
import { OperatorSettings, refuseAll } from "../functions/contract/settings.ts";
import { readDeploySettings } from "./deploy-settings.ts";
import { type DeclaredServers, findServers, type ServersSource } from "./mcp-servers.ts";
import { findSkills, type VerifiedSkills } from "./verified-skills.ts";
import { findSettingsWarnings, type Warning } from "./warnings.ts";

/** All that an operator decides, checked together: who puts one mistake right should not find the next one after it. */

export type ProjectSource = {
  /** As the operator wrote them. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Directories that hold repositories beside `pins.json`. */
  readonly skills: readonly string[];
  readonly servers: ServersSource;
  /** What was found wrong before. */
  readonly violations?: readonly Violation[];
  /** What is wrong with settings in the words of who wrote them; left out, by the names of the settings. */
  readonly toOwnWords?: (violation: Violation) => Violation;
  /** Where it is deployed, if that is known. */
  readonly region?: string | undefined;
  readonly account?: string | undefined;
};

export type CheckedProject = {
  readonly settings: OperatorSettings;
  readonly skills: VerifiedSkills;
  readonly servers: DeclaredServers;
  /** What is allowed and seldom meant. */
  readonly warnings: readonly Warning[];
};

/** A refusal lists every mistake of every kind: settings, skills by the name of the file, servers. */
export function checkProject(source: ProjectSource): Outcome<CheckedProject> {
  const { violations = [], toOwnWords = (violation) => violation } = source;
  const repositories = OperatorSettings.shape.repositories.safeParse(source.settings.repositories).data;
  const skills = findSkills({ roots: source.skills, repositories });
  const servers = findServers(source.servers, { reserved: reservedServerNames(skills.names) });
  const read = readDeploySettings(source.settings, { refs: skills.refs, servers: servers.declared });
  const all = [
    ...violations,
    ...read.violations.map(toOwnWords),
    ...findForeignArns(source).map(toOwnWords),
    ...skills.problems.map((message) => ({ path: "/skills", message })),
    ...servers.problems,
    ...findForeignSecrets(servers, source),
  ];
  const { settings } = read;
  if (settings === undefined || all.length > 0) return refuseAll("this cannot be deployed", all);
  return succeed({ settings, skills, servers, warnings: [...findSettingsWarnings(settings), ...servers.warnings] });
}

/** What is used from one region only, and would be missing at the deployment. */
function findForeignArns({ settings, region }: ProjectSource): readonly Violation[] {
  return ["encryptionKeyArn", "alarmTopicArn"].flatMap((name) => {
    const message = findForeign(settings[name], { region });
    return message === undefined ? [] : [{ path: `/${name}`, message }];
  });
}

/** Functions ask in their own region, and may decrypt by keys of their own account. */
function findForeignSecrets({ secrets }: DeclaredServers, { region, account }: ProjectSource): readonly Violation[] {
  return secrets.flatMap(({ name }) => {
    const message = findForeign(name, { region, account });
    return message === undefined ? [] : [{ path: "/mcpServers", message: `${name}: ${message}` }];
  });
}

type Home = { readonly region: string | undefined; readonly account?: string | undefined };

function findForeign(arn: unknown, { region, account }: Home): string | undefined {
  const [prefix, , , ofRegion, ofAccount] = typeof arn === "string" ? arn.split(":") : [];
  if (prefix !== "arn") return undefined;
  if (region !== undefined && ofRegion !== region) return `is of ${ofRegion}, and the stack is deployed to ${region}`;
  if (account === undefined || ofAccount === account) return undefined;
  return `is of the account ${ofAccount}, and the stack is deployed to ${account}`;
}
