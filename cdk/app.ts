import { dirname, join, resolve } from "node:path";
import { App } from "aws-cdk-lib";
import { CURRENTLY_RECOMMENDED_FLAGS } from "aws-cdk-lib/cx-api";
import { Fault } from "../functions/contract/fault.ts";
import { bundleFunctions } from "./bundle.ts";
import { parseDeploySettings } from "./deploy-settings.ts";
import { readServers } from "./mcp-servers.ts";
import { SkillBrokerStack } from "./skillbroker-stack.ts";
import { verifySkills } from "./verified-skills.ts";

/**
 * What `cdk synth` runs. Mistakes of the operator are told in one list, without a stack; `autoSynth` is off, because
 * it would write an empty template after they were told.
 */

// What `cdk init` would write into cdk.json, 85 lines; the library's exact version fixes them as well.
const app = new App({ autoSynth: false, context: CURRENTLY_RECOMMENDED_FLAGS });

try {
  await synthesise();
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

async function synthesise(): Promise<void> {
  const context = app.node.getAllContext();
  const parsed = parseDeploySettings(context);
  if (!parsed.ok) throw parsed.fault;
  const settings = parsed.value;
  // The CDK runs the app in the directory of cdk.json.
  const skills = verifySkills({ root: resolve(settings.skills), repositories: settings.repositories });
  const servers = readServers({
    path: resolve(settings.mcp),
    name: settings.mcp,
    required: "mcp" in context,
    reserved: ["builtin", "local", ...skills.pins.keys()],
  });
  const bundles = await bundleFunctions({
    root: dirname(import.meta.dirname),
    skills,
    servers,
    // Not a temporary directory: without asset staging the template points at this very place.
    directory: join(app.outdir, "bundles"),
  });
  new SkillBrokerStack(app, "SkillBroker", { settings, servers, bundles });
  app.synth();
}
