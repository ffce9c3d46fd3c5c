import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
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

/** The app alone, with `context` as the tool hands it over; takes a third of the time. */
export function runApp(output: string, context: unknown): Ran {
  return run([join(ROOT, "cdk/app.ts")], { CDK_OUTDIR: output, CDK_CONTEXT_JSON: JSON.stringify(context) });
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

/** Name of the one asset directory, which ends in its hash. */
export function assetName(output: string): string {
  const names = readdirSync(output).filter((name) => name.startsWith("asset."));
  if (names.length !== 1 || names[0] === undefined) throw new Error(`one asset expected, got ${names.join(" ")}`);
  return names[0];
}
