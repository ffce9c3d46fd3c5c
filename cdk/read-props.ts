import { RemovalPolicy, Token } from "aws-cdk-lib";
import type { Violation } from "../functions/contract/fault.ts";
import { toPointer } from "../functions/contract/violations.ts";
import type { CheckedProject, ProjectSource } from "./checked-project.ts";
import type { ServersSource } from "./mcp-servers.ts";
import { BUILTIN_SKILLS } from "./package-places.ts";
import type { JwtAuthProps, SkillBrokerProps } from "./skillbroker-props.ts";

/** From the props of a construct to what is checked of every project. */

/** Props that are settings of the same name. */
const SETTINGS: ReadonlySet<string> = new Set([
  "tools",
  "repositories",
  "auth",
  "limits",
  "asyncJobSeconds",
  "asyncJobsAtOnce",
  "httpConcurrency",
  "artifactDays",
  "debounceSeconds",
  "longestWaitSeconds",
  "reconcileSeconds",
  "maxListAgeSeconds",
  "logDays",
  "tags",
] satisfies (keyof SkillBrokerProps)[]);

/** Props that are read here. */
const OWN: ReadonlySet<string> = new Set([
  "skills",
  "mcpServers",
  "encryptionKey",
  "alarmActions",
  "alarmTopic",
  "removalPolicy",
  "functionsCode",
] satisfies (keyof SkillBrokerProps)[]);

/** Settings of an app that have another name among the props. */
const OTHER_NAMES: ReadonlyMap<string, keyof SkillBrokerProps> = new Map([
  ["mcp", "mcpServers"],
  ["encryptionKeyArn", "encryptionKey"],
  ["alarmTopicArn", "alarmTopic"],
  ["dataAtRemoval", "removalPolicy"],
]);

/** The props in the words of the settings, and what is wrong with them beside those. */
export function toProjectSource(props: SkillBrokerProps): ProjectSource {
  const skills = readSkills(props.skills);
  const known = Object.entries(props).filter(([name]) => SETTINGS.has(name));
  return {
    settings: {
      ...Object.fromEntries(known),
      ...(typeof props.encryptionKey === "string" ? { encryptionKeyArn: props.encryptionKey } : {}),
      ...(typeof props.alarmTopic === "string" ? { alarmTopicArn: props.alarmTopic } : {}),
      ...(props.removalPolicy === RemovalPolicy.DESTROY ? { dataAtRemoval: "delete" } : {}),
      ...(isKnownLater(props.auth) ? { auth: { ...props.auth, issuer: ISSUER_KNOWN_LATER } } : {}),
    },
    skills: skills ?? [],
    servers: toServersSource(props.mcpServers),
    violations: [...findUnknown(props), ...findSkillsProblem(skills), ...findRemovalProblem(props)],
  };
}

/** Stands where the checks want a URL. */
const ISSUER_KNOWN_LATER = "https://known-while-deploying.invalid/";

/** The project with the issuer of the props, which was no URL yet. */
export function withIssuer(project: CheckedProject, { auth }: SkillBrokerProps): CheckedProject {
  const checked = project.settings.auth;
  if (!isKnownLater(auth) || typeof checked === "string") return project;
  return { ...project, settings: { ...project.settings, auth: { ...checked, issuer: auth.issuer } } };
}

function isKnownLater(auth: SkillBrokerProps["auth"]): auth is JwtAuthProps {
  return typeof auth === "object" && auth !== null && Token.isUnresolved(auth.issuer);
}

function readSkills(skills: unknown = [BUILTIN_SKILLS]): readonly string[] | undefined {
  const roots: readonly unknown[] = Array.isArray(skills) ? skills : [skills];
  const texts = roots.filter((root): root is string => typeof root === "string" && root !== "");
  return texts.length === roots.length && roots.length > 0 ? texts : undefined;
}

function findSkillsProblem(skills: readonly string[] | undefined): readonly Violation[] {
  if (skills !== undefined) return [];
  return [{ path: "/skills", message: "a directory that holds repositories beside pins.json expected, or several" }];
}

function toServersSource(servers: SkillBrokerProps["mcpServers"]): ServersSource {
  if (typeof servers === "string") return { path: servers, name: servers, namedBy: "mcpServers" };
  return { value: { mcpServers: servers ?? {} } };
}

function findUnknown(props: SkillBrokerProps): readonly Violation[] {
  const unknown = Object.keys(props).filter((name) => !SETTINGS.has(name) && !OWN.has(name));
  return unknown.toSorted().map((name) => {
    const meant = OTHER_NAMES.get(name);
    return { path: toPointer([name]), message: meant ? `is called ${meant} here` : "unknown field; leave it out" };
  });
}

function findRemovalProblem({ removalPolicy }: SkillBrokerProps): readonly Violation[] {
  if (removalPolicy === undefined || removalPolicy === RemovalPolicy.RETAIN) return [];
  if (removalPolicy === RemovalPolicy.DESTROY) return [];
  return [{ path: "/removalPolicy", message: `RETAIN or DESTROY expected, got ${removalPolicy}` }];
}
