import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import { NO_SERVERS, type StoredSecret } from "../../../cdk/mcp-servers.ts";
import { SkillBrokerStack } from "../../../cdk/skillbroker-stack.ts";
import { OperatorSettings } from "../../../functions/contract/settings.ts";
import { makeTempDirectory } from "./temp-directory.ts";

/** The stack with placeholders for code, and its template in words: `{"Fn::GetAtt": [id, "Arn"]}` is `id.Arn`. */

export type StackChoices = {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly servers?: { readonly names: readonly string[]; readonly secrets: readonly StoredSecret[] };
};

/** To be called once a file, at its top. Templates are not validated, which takes seconds: the real synth does that. */
export function stackMaker(): (choices?: StackChoices) => SkillBrokerStack {
  const directory = join(makeTempDirectory(), "code");
  mkdirSync(directory);
  writeFileSync(join(directory, "index.mjs"), "export const handler = async () => ({});\n");
  const bundles = { http: { directory }, notify: { directory }, refresh: { directory }, reconcile: { directory } };
  return ({ settings = {}, servers = NO_SERVERS } = {}) =>
    new SkillBrokerStack(new App({ builtinCloudFormationValidation: false }), "SkillBroker", {
      settings: OperatorSettings.parse(settings),
      bundles,
      servers,
    });
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
