import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App, RemovalPolicy, Stack } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import { FUNCTION_NAMES } from "../../../cdk/entry-points.ts";
import { NO_SERVERS } from "../../../cdk/mcp-servers.ts";
import { BUILTIN_SKILLS } from "../../../cdk/package-places.ts";
import type { StoredSecret } from "../../../cdk/secret-arns.ts";
import type { McpServer, SkillBrokerProps } from "../../../cdk/skillbroker-props.ts";
import { SkillBrokerStack } from "../../../cdk/skillbroker-stack.ts";
import { makeTempDirectory } from "./temp-directory.ts";

/** The stack with placeholders for code, and its template in words: `{"Fn::GetAtt": [id, "Arn"]}` is `id.Arn`. */

export type StackChoices = {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly servers?: { readonly names: readonly string[]; readonly secrets: readonly StoredSecret[] };
  /** What only CDK objects can say. */
  readonly props?: (stack: Stack) => SkillBrokerProps;
};

/** To be called once a file, at its top. Templates are not validated, which takes seconds: the real synth does that. */
export function stackMaker(): (choices?: StackChoices) => SkillBrokerStack {
  const functionsCode = placeholderCode(makeTempDirectory());
  return ({ settings = {}, servers = NO_SERVERS, props = () => ({}) } = {}) => {
    const app = new App({ builtinCloudFormationValidation: false });
    const service = {
      ...toProps(settings),
      mcpServers: declare(servers),
      functionsCode,
      ...props(new Stack(app, "Beside")),
    };
    return new SkillBrokerStack(app, "SkillBroker", { service });
  };
}

/** Code of the functions that is good enough for a template. */
export function placeholderCode(directory: string): string {
  for (const name of FUNCTION_NAMES) {
    mkdirSync(join(directory, name), { recursive: true });
    writeFileSync(join(directory, name, "index.mjs"), "export const handler = async () => ({});\n");
  }
  return directory;
}

/** Settings of the ready app in the words of the construct. */
function toProps(settings: Readonly<Record<string, unknown>>): SkillBrokerProps {
  const { encryptionKeyArn, alarmTopicArn, dataAtRemoval, ...same } = settings;
  return Object({
    ...same,
    skills: [BUILTIN_SKILLS],
    encryptionKey: encryptionKeyArn,
    alarmTopic: alarmTopicArn,
    removalPolicy: dataAtRemoval === "delete" ? RemovalPolicy.DESTROY : undefined,
  });
}

/** Servers of these names, the first of which names the secrets. */
function declare({ names, secrets }: Required<StackChoices>["servers"]): Readonly<Record<string, McpServer>> {
  const named = secrets.map(({ store, name }, index) => [`X-${index}`, `\${${store}:${name}}`]);
  const servers = (names.length === 0 && secrets.length > 0 ? ["any"] : names).map((name, index) => [
    name,
    { url: `https://${name}.test/`, headers: index === 0 ? Object.fromEntries(named) : {} },
  ]);
  return Object.fromEntries(servers);
}

// biome-ignore lint/suspicious/noExplicitAny: CloudFormation's own shapes
export type Properties = any;

/** Name of each resource of a type, without the hash that the CDK appends -> its properties. */
export function resourcesOf(template: Template, type: string): ReadonlyMap<string, Properties> {
  const found = Object.entries(template.findResources(type));
  return new Map(found.map(([id, { Properties }]) => [withoutHash(id), Properties]));
}

const withoutHash = (id: string) => id.replace(/[0-9A-F]{8}$/, "");

/** References, attributes and joined texts as one text; `AWS::Region` and the like as `<Region>`. */
export function toWords(value: Properties): string {
  if (typeof value === "string") return value;
  const [intrinsic = "", argument] = Object.entries<Properties>(value)[0] ?? [];
  if (intrinsic === "Ref") return argument.startsWith("AWS::") ? `<${argument.slice(5)}>` : withoutHash(argument);
  if (intrinsic === "Fn::GetAtt") return `${withoutHash(argument[0])}.${argument[1]}`;
  if (intrinsic === "Fn::Join") return argument[1].map(toWords).join(argument[0]);
  throw new Error(`no words for ${intrinsic}`);
}

export type Grant = { readonly action: string; readonly resource: string; readonly condition: unknown };

/** Everything that the role of a function allows. Throws when anything but its own policies says what it may do. */
export function grantsOf(template: Template, functionName: string): readonly Grant[] {
  const role = toWords(resourcesOf(template, "AWS::Lambda::Function").get(functionName)?.Role).replace(".Arn", "");
  const { Policies = [], ManagedPolicyArns } = resourcesOf(template, "AWS::IAM::Role").get(role);
  if (ManagedPolicyArns !== undefined) throw new Error(`${role} borrows a managed policy`);
  const attached = [...resourcesOf(template, "AWS::IAM::Policy").values()].filter(({ Roles }) =>
    Roles.some((each: Properties) => toWords(each) === role),
  );
  const statements: Properties[] = [...Policies, ...attached].flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
  return statements.flatMap(({ Effect, Action, Resource, Condition }) => {
    if (Effect !== "Allow") throw new Error(`${role} has a statement that is ${Effect}`);
    const resources = [Resource].flat().map(toWords);
    return [Action]
      .flat()
      .flatMap((action) => resources.map((resource) => ({ action, resource, condition: Condition })));
  });
}
