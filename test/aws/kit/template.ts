import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { runApp, shippedContext } from "../../cdk/kit/run-app.ts";

/** The cloud assembly that the CDK app writes, and what its template says once the resources are made. */

export type Resource = { readonly Type: string; readonly Properties: Readonly<Record<string, unknown>> };
/** Logical id -> resource. */
export type Resources = ReadonlyMap<string, Resource>;

export type Assembly = {
  readonly resources: Resources;
  /** Name -> value, still with references. */
  readonly outputs: ReadonlyMap<string, unknown>;
  /** Key of an object in the bucket of assets -> the directory that is zipped into it. */
  readonly assets: ReadonlyMap<string, string>;
};

export type ProjectChoices = {
  /** Over what this project ships. */
  readonly context?: Readonly<Record<string, unknown>>;
  /** Name of each MCP server -> what `mcp.json` has of it. */
  readonly servers?: Readonly<Record<string, unknown>>;
};

/** Runs the app for a project with servers of its own. Throws what the app said when it refused. */
export function synthesiseProject(directory: string, { context = {}, servers = {} }: ProjectChoices): Assembly {
  const output = join(directory, "cdk.out");
  const mcp = join(directory, "mcp.json");
  mkdirSync(directory, { recursive: true });
  writeFileSync(mcp, JSON.stringify({ mcpServers: servers }));
  const { code, stderr } = runApp(output, { ...shippedContext(), mcp, ...context });
  if (code !== 0) throw new Error(`the app ended with ${code}: ${stderr}`);
  return readAssembly(output);
}

const Properties = z.record(z.string(), z.unknown());
const Manifest = z.object({
  artifacts: z.record(z.string(), z.object({ type: z.string(), properties: Properties.optional() })),
});
const Assets = z.object({
  files: z.record(
    z.string(),
    z.object({
      source: z.object({ path: z.string(), packaging: z.string() }),
      destinations: z.record(z.string(), z.object({ objectKey: z.string() })),
    }),
  ),
});
const Template = z.object({
  Resources: z.record(z.string(), z.object({ Type: z.string(), Properties: Properties.default({}) })),
  Outputs: z.record(z.string(), z.object({ Value: z.unknown() })).default({}),
});

/** Throws unless the directory holds one stack and its assets. */
export function readAssembly(directory: string): Assembly {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(directory, file), "utf8"));
  const artifacts = Object.values(Manifest.parse(read("manifest.json")).artifacts);
  const fileOf = (type: string, property: string) => {
    const [found, ...others] = artifacts.filter((artifact) => artifact.type === type);
    if (others.length > 0) throw new Error(`more than one ${type} in ${directory}`);
    return z.string().parse(found?.properties?.[property]);
  };
  const { Resources, Outputs } = Template.parse(read(fileOf("aws:cloudformation:stack", "templateFile")));
  const { files } = Assets.parse(read(fileOf("cdk:asset-manifest", "file")));
  const zipped = Object.values(files).filter(({ source }) => source.packaging === "zip");
  return {
    resources: new Map(Object.entries(Resources)),
    outputs: new Map(Object.entries(Outputs).map(([name, { Value }]) => [name, Value])),
    assets: new Map(
      zipped.flatMap(({ source, destinations }) =>
        Object.values(destinations).map(({ objectKey }) => [objectKey, join(directory, source.path)] as const),
      ),
    ),
  };
}

/** The resources of a type, by logical id. */
export function resourcesOf(
  resources: Resources,
  type: string,
): readonly (readonly [string, Resource["Properties"]])[] {
  return [...resources].flatMap(([id, { Type, Properties }]) => (Type === type ? [[id, Properties] as const] : []));
}

/** What a made resource is known by. */
export type Made = { readonly ref: string; readonly attributes: Readonly<Record<string, string>> };

export type Resolution = {
  /** Logical id -> what was made; pseudo parameters, such as `AWS::Region`, among them. */
  readonly made: ReadonlyMap<string, Made>;
};

const Reference = z.strictObject({ Ref: z.string() });
const Attribute = z.strictObject({
  "Fn::GetAtt": z.union([z.tuple([z.string(), z.string()]), z.string().transform((text) => text.split(".", 2))]),
});
const Joined = z.strictObject({ "Fn::Join": z.tuple([z.string(), z.array(z.unknown())]) });
const Substituted = z.strictObject({
  "Fn::Sub": z.union([
    z.string().transform((text) => [text, {}] as const),
    z.tuple([z.string(), z.record(z.string(), z.unknown())]),
  ]),
});
const Selected = z.strictObject({ "Fn::Select": z.tuple([z.coerce.number(), z.array(z.unknown())]) });

/**
 * The value as CloudFormation would pass it on: every intrinsic in it replaced, at any depth. Throws for a resource
 * that was not made, for an attribute that it has not, and for an intrinsic that is not known here.
 */
export function resolve(value: unknown, resolution: Resolution): unknown {
  if (Array.isArray(value)) return value.map((each) => resolve(each, resolution));
  if (typeof value !== "object" || value === null) return value;
  const reference = Reference.safeParse(value);
  if (reference.success) return refOf(reference.data.Ref, resolution);
  const attribute = Attribute.safeParse(value);
  if (attribute.success) return attributeOf(attribute.data["Fn::GetAtt"], resolution);
  const joined = Joined.safeParse(value);
  if (joined.success) return joinAll(joined.data["Fn::Join"], resolution);
  const substituted = Substituted.safeParse(value);
  if (substituted.success) return substitute(substituted.data["Fn::Sub"], resolution);
  const selected = Selected.safeParse(value);
  if (selected.success) return resolve(selected.data["Fn::Select"][1][selected.data["Fn::Select"][0]], resolution);
  const unknown = Object.keys(value).find((key) => key.startsWith("Fn::"));
  if (unknown !== undefined) throw new Error(`${unknown} is not known here: ${JSON.stringify(value)}`);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolve(each, resolution)]));
}

/** As `resolve`, where a text is wanted; a number is written out, as CloudFormation writes it. */
export function resolveText(value: unknown, resolution: Resolution): string {
  const resolved = resolve(value, resolution);
  if (typeof resolved === "number" || typeof resolved === "boolean") return String(resolved);
  if (typeof resolved !== "string") throw new Error(`a text expected, got ${JSON.stringify(resolved)}`);
  return resolved;
}

function refOf(id: string, { made }: Resolution): string {
  const found = made.get(id);
  if (found === undefined) throw new Error(`nothing was made for ${id}`);
  return found.ref;
}

function attributeOf([id = "", name = ""]: readonly string[], { made }: Resolution): string {
  const value = made.get(id)?.attributes[name];
  if (value === undefined) throw new Error(`nothing is known of ${id}.${name}`);
  return value;
}

function joinAll([separator, parts]: readonly [string, readonly unknown[]], resolution: Resolution): string {
  return parts.map((part) => resolveText(part, resolution)).join(separator);
}

function substitute(
  [text, values]: readonly [string, Readonly<Record<string, unknown>>],
  resolution: Resolution,
): string {
  return text.replace(/\$\{([^!}][^}]*)\}/g, (_, name: string) => {
    if (Object.hasOwn(values, name)) return resolveText(values[name], resolution);
    const [id = "", ...attribute] = name.split(".");
    return attribute.length === 0 ? refOf(id, resolution) : attributeOf([id, attribute.join(".")], resolution);
  });
}

const WithVariables = z.looseObject({ Environment: z.object({ Variables: z.record(z.string(), z.unknown()) }) });

/** Variables of a function by its logical id, as the template has them; none for one that has none. */
export function variablesOf({ resources }: Assembly, id: string): Readonly<Record<string, unknown>> {
  const parsed = WithVariables.safeParse(resources.get(id)?.Properties);
  return parsed.success ? parsed.data.Environment.Variables : {};
}

/** The stack as if nobody had told the function these variables. */
export function withoutVariables(assembly: Assembly, id: string, names: readonly string[]): Assembly {
  const resource = assembly.resources.get(id);
  if (resource === undefined) throw new Error(`the template has no ${id}`);
  const left = Object.entries(variablesOf(assembly, id)).filter(([name]) => !names.includes(name));
  const Properties = { ...resource.Properties, Environment: { Variables: Object.fromEntries(left) } };
  return { ...assembly, resources: new Map([...assembly.resources, [id, { ...resource, Properties }]]) };
}
