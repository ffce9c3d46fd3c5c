import { dirname, join, resolve } from "node:path";
import type { App } from "aws-cdk-lib";
import { reservedServerNames } from "../functions/contract/mcp-server.ts";
import { bundleFunctions } from "./bundle.ts";
import { parseDeploySettings } from "./deploy-settings.ts";
import { readServers } from "./mcp-servers.ts";
import { SkillBrokerStack } from "./skillbroker-stack.ts";
import { verifySkills } from "./verified-skills.ts";

/**
 * Checks everything that is to be deployed, bundles it and writes the template to the app's directory. Paths in the
 * context are taken from the working directory, which for the CDK is that of cdk.json. Throws a `Fault` that tells the
 * mistakes of the operator; then there is neither a stack nor a template.
 */
export async function synthesise(app: App): Promise<void> {
  const context = app.node.getAllContext();
  const parsed = parseDeploySettings(context);
  if (!parsed.ok) throw parsed.fault;
  const settings = parsed.value;
  const skills = verifySkills({ root: resolve(settings.skills), repositories: settings.repositories });
  const servers = readServers({
    path: resolve(settings.mcp),
    name: settings.mcp,
    required: "mcp" in context,
    reserved: reservedServerNames([...skills.pins.keys()]),
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
