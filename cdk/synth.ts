import { existsSync } from "node:fs";
import { join } from "node:path";
import { type App, RemovalPolicy } from "aws-cdk-lib";
import { orThrow } from "../functions/contract/fault.ts";
import { OperatorSettings } from "../functions/contract/settings.ts";
import { buildFunctions } from "./build-functions.ts";
import { checkProject, type ProjectSource } from "./checked-project.ts";
import { PACKAGE_ROOT } from "./package-places.ts";
import type { SkillBrokerProps } from "./skillbroker-props.ts";
import { SkillBrokerStack } from "./skillbroker-stack.ts";

/**
 * Checks everything that is to be deployed, builds it and writes the template to the app's directory. Paths in the
 * context are taken from the working directory, which for the CDK is that of cdk.json. Throws a `Fault` that tells the
 * mistakes of the operator; then there is neither a stack nor a template.
 */
export async function synthesise(app: App): Promise<void> {
  const context: Readonly<Record<string, unknown>> = app.node.getAllContext();
  const source = toSource(context);
  const { settings } = orThrow(checkProject(source));
  const functionsCode = join(app.outdir, "code");
  await buildFunctions({ root: PACKAGE_ROOT, directory: functionsCode });
  new SkillBrokerStack(app, "SkillBroker", { service: { ...toProps(settings, source.skills), functionsCode } });
  app.synth();
}

const { skills: SkillsDirectory, mcp: ServersPath } = OperatorSettings.shape;

function toSource(context: Readonly<Record<string, unknown>>): ProjectSource {
  const { data: skills } = SkillsDirectory.safeParse(context.skills);
  const { data: mcp } = ServersPath.safeParse(context.mcp);
  return {
    settings: context,
    skills: skills === undefined ? [] : [skills],
    servers:
      mcp === undefined
        ? { value: { mcpServers: {} } }
        : { path: mcp, name: mcp, namedBy: "mcp" in context ? "mcp" : undefined },
  };
}

/** The settings of an app in the words of the construct, which reads the servers where there are some. */
export function toProps(settings: OperatorSettings, skills: readonly string[]): SkillBrokerProps {
  const { skills: _, mcp, encryptionKeyArn, alarmTopicArn, dataAtRemoval, ...same } = settings;
  return {
    ...same,
    skills,
    mcpServers: existsSync(mcp) ? mcp : undefined,
    encryptionKey: encryptionKeyArn,
    alarmTopic: alarmTopicArn,
    removalPolicy: dataAtRemoval === "delete" ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN,
  };
}
