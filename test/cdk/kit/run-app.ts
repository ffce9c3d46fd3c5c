import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/** Runs the CDK app as a stranger would: the checkout, no account, nothing in the environment but where node is. */

export const ROOT = dirname(dirname(dirname(import.meta.dirname)));

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** `cdk synth` into `output`; the tool checks nothing over the network and, as by default, validates the template. */
export function runSynth(output: string): Ran {
  return run([join(ROOT, "node_modules/aws-cdk/bin/cdk"), "synth", "--output", output], {
    HOME: output,
    CDK_DISABLE_VERSION_CHECK: "1",
  });
}

/** The app alone, with `context` as the tool hands it over and without the validation: a quarter of the time. */
export function runApp(output: string, context: unknown): Ran {
  return run([join(ROOT, "cdk/app.ts")], {
    CDK_OUTDIR: output,
    CDK_CONTEXT_JSON: JSON.stringify(context),
    CDK_VALIDATION: "false",
  });
}

function run(words: readonly string[], env: Readonly<Record<string, string>>): Ran {
  const path = [dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter);
  const { status, stdout, stderr } = spawnSync(process.execPath, words, {
    cwd: ROOT,
    env: { PATH: path, ...env },
    encoding: "utf8",
  });
  return { code: status, stdout, stderr };
}

/** The context that this project ships. */
export function shippedContext(): Readonly<Record<string, unknown>> {
  return JSON.parse(readFileSync(join(ROOT, "cdk.json"), "utf8")).context;
}

export function readTemplate(output: string) {
  return JSON.parse(readFileSync(join(output, "SkillBroker.template.json"), "utf8"));
}

export type DeployedFunction = {
  /** Path of the directory that is deployed; its name ends in the hash of what is in it. */
  readonly asset: string;
  /** As the template has it: texts, and references to what is known only while deploying. */
  readonly variables: Readonly<Record<string, unknown>>;
};

/** The functions of a stack by the names of their constructs: `Http`, `RefreshPathNotify`, … */
export function readFunctions(output: string): ReadonlyMap<string, DeployedFunction> {
  const resources = Object.entries<TemplateResource>(readTemplate(output).Resources);
  const functions = resources.filter(([, { Type }]) => Type === "AWS::Lambda::Function");
  return new Map(
    functions.map(([id, { Properties }]) => {
      const asset = join(output, `asset.${Properties.Code.S3Key.replace(".zip", "")}`);
      return [id.replace(/Function[0-9A-F]{8}$/, ""), { asset, variables: Properties.Environment.Variables }] as const;
    }),
  );
}

type TemplateResource = {
  readonly Type: string;
  readonly Properties: {
    readonly Code: { readonly S3Key: string };
    readonly Environment: { readonly Variables: Readonly<Record<string, unknown>> };
  };
};
