import { RemovalPolicy, Token } from "aws-cdk-lib";
import type { Violation } from "../functions/contract/fault.ts";
import { OperatorSettings } from "../functions/contract/settings.ts";
import { toPointer } from "../functions/contract/violations.ts";
import type { CheckedProject, ProjectSource } from "./checked-project.ts";
import type { ServersSource } from "./mcp-servers.ts";
import { BUILTIN_SKILLS } from "./package-places.ts";
import type { SkillBrokerProps } from "./skillbroker-props.ts";

/** From the props of a construct to what is checked of every project. */

/** Settings of an app that have another name among the props. */
const OTHER_NAMES = new Map<string, keyof SkillBrokerProps>([
  ["mcp", "mcpServers"],
  ["encryptionKeyArn", "encryptionKey"],
  ["alarmTopicArn", "alarmTopic"],
  ["dataAtRemoval", "removalPolicy"],
] satisfies [keyof OperatorSettings, keyof SkillBrokerProps][]);

/** Props that no setting is like. */
const OWN_NAMES = ["skills", "alarmActions", "functionsCode"] as const satisfies readonly (keyof SkillBrokerProps)[];

/** Props that are settings of the same name. */
const SAME_NAMES: ReadonlySet<string> = new Set(
  Object.keys(OperatorSettings.shape).filter((name) => name !== "skills" && !OTHER_NAMES.has(name)),
);
const NAMES: ReadonlySet<string> = new Set([...SAME_NAMES, ...OWN_NAMES, ...OTHER_NAMES.values()]);

/** The props in the words of the settings, and what is wrong with them beside those. */
export function toProjectSource(props: SkillBrokerProps): ProjectSource {
  const given = Object.entries(props).filter(([, value]) => value !== undefined);
  const same = given
    .filter(([name]) => SAME_NAMES.has(name))
    .map(([name, value]) => [name, withPlaceholders(name, value)]);
  const skills = readSkills(props.skills);
  return {
    settings: {
      ...Object.fromEntries(same.filter(([, value]) => findTokens(value, []).length === 0)),
      ...(isPlainText(props.encryptionKey) ? { encryptionKeyArn: props.encryptionKey } : {}),
      ...(isPlainText(props.alarmTopic) ? { alarmTopicArn: props.alarmTopic } : {}),
      ...(props.removalPolicy === RemovalPolicy.DESTROY ? { dataAtRemoval: "delete" } : {}),
    },
    skills: skills ?? [],
    servers: toServersSource(props.mcpServers),
    violations: [
      ...findUnknown(given),
      ...same.flatMap(([name, value]) => findTokens(value, [String(name)])),
      ...findSkillsProblem(skills),
      ...findRemovalProblem(props),
      ...findObjectProblems(props),
    ],
    toOwnWords,
  };
}

/** A mistake in a setting by the name of its prop. */
function toOwnWords({ path, message }: Violation): Violation {
  const [, name = "", ...rest] = path.split("/");
  return { path: ["", OTHER_NAMES.get(name) ?? name, ...rest].join("/"), message };
}

/** Stands where the checks want a URL. */
const ISSUER_KNOWN_LATER = "https://known-while-deploying.invalid/";
const TAG_KNOWN_LATER = "known while deploying";

/** What may be known while deploying only is taken for something that there is nothing wrong with. */
function withPlaceholders(name: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  if (name === "auth") {
    const issuer = isTextLater(value.issuer) ? ISSUER_KNOWN_LATER : value.issuer;
    return { ...value, issuer, audience: toKnownAudience(value.audience) };
  }
  if (name !== "tags") return value;
  const tags = Object.entries(value).map(([key, text]) => [key, isTextLater(text) ? TAG_KNOWN_LATER : text]);
  return Object.fromEntries(tags);
}

/** One for each, since no two may be the same. */
function toKnownAudience(audience: unknown): unknown {
  if (!Array.isArray(audience) || isToken(audience)) return audience;
  return audience.map((each, index) => (isTextLater(each) ? `known-later-${index}` : each));
}

/** The project with what of the props was not known yet. */
export function withLaterValues(project: CheckedProject, { auth, tags }: SkillBrokerProps): CheckedProject {
  const checked = project.settings.auth;
  const known =
    typeof checked === "string" || typeof auth !== "object"
      ? checked
      : { ...checked, issuer: auth.issuer, audience: [...auth.audience] };
  return { ...project, settings: { ...project.settings, auth: known, tags: { ...tags } } };
}

/** Every value that the checks cannot see into, by its path. */
function findTokens(value: unknown, path: readonly string[]): readonly Violation[] {
  if (isToken(value))
    return [{ path: toPointer(path), message: "must be known at the synth, and is known later only" }];
  if (!isObject(value) && !Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => findTokens(member, [...path, name]));
}

function isToken(value: unknown): boolean {
  return Token.isUnresolved(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isTextLater(value: unknown): boolean {
  return isText(value) && isToken(value);
}

function isPlainText(value: unknown): value is string {
  return isText(value) && !isToken(value);
}

function readSkills(skills: unknown = [BUILTIN_SKILLS]): readonly string[] | undefined {
  const roots: readonly unknown[] = Array.isArray(skills) ? skills : [skills];
  const texts = roots.filter((root): root is string => isPlainText(root) && root !== "");
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

function findUnknown(given: readonly (readonly [string, unknown])[]): readonly Violation[] {
  const unknown = given.map(([name]) => name).filter((name) => !NAMES.has(name));
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

/** Types say it to TypeScript; an app in JavaScript would read an error of the CDK's without a word of where. */
function findObjectProblems(props: SkillBrokerProps): readonly Violation[] {
  const { encryptionKey, alarmTopic, alarmActions, functionsCode } = props;
  return [
    ...findWrong("encryptionKey", encryptionKey, { type: "Key", arn: "keyArn", from: "Key.fromKeyArn" }),
    ...findWrong("alarmTopic", alarmTopic, { type: "Topic", arn: "topicArn", from: "Topic.fromTopicArn" }),
    ...(alarmActions === undefined || (Array.isArray(alarmActions) && alarmActions.every(isAction))
      ? []
      : [{ path: "/alarmActions", message: "a list of alarm actions expected, such as new SnsAction(topic)" }]),
    ...(functionsCode === undefined || isPlainText(functionsCode)
      ? []
      : [{ path: "/functionsCode", message: "the path of a directory expected" }]),
  ];
}

function isAction(value: unknown): boolean {
  return isObject(value) && typeof value.bind === "function";
}

type Wanted = { readonly type: string; readonly arn: string; readonly from: string };

function findWrong(name: string, value: unknown, { type, arn, from }: Wanted): readonly Violation[] {
  if (value === undefined || isPlainText(value)) return [];
  const path = toPointer([name]);
  if (isText(value)) {
    return [{ path, message: `an ARN that is known later only is handed over as ${from}(scope, id, arn)` }];
  }
  if (isObject(value) && isText(value[arn])) return [];
  return [{ path, message: `a ${type} of the CDK, or its ARN, expected` }];
}
