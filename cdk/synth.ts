import { join } from "node:path";
import type { App } from "aws-cdk-lib";
import { orThrow } from "../functions/contract/fault.ts";
import { OperatorSettings, pickSettings, toContextWords } from "../functions/contract/settings.ts";
import { buildFunctions } from "./build-functions.ts";
import { type CheckedProject, checkProject, type ProjectSource } from "./checked-project.ts";
import { PACKAGE_ROOT } from "./package-places.ts";
import { CheckedProps } from "./skillbroker.ts";
import { SkillBrokerStack } from "./skillbroker-stack.ts";

/**
 * Checks everything that is to be deployed, builds it and writes the template to the app's directory. Paths in the
 * context are taken from the working directory, which for the CDK is that of cdk.json. Throws a `Fault` that tells the
 * mistakes of the operator; then there is neither a stack nor a template.
 */
export async function synthesise(app: App): Promise<void> {
  const project = orThrow(checkProject(toSource(app.node.getAllContext())));
  const functionsCode = join(app.outdir, "code");
  await buildFunctions({ root: PACKAGE_ROOT, directory: functionsCode });
  new SkillBrokerStack(app, "SkillBroker", { service: toCheckedProps(project, functionsCode) });
  app.synth();
}

const { skills: SkillsDirectory, mcp: ServersPath } = OperatorSettings.shape;

/** The project that a context describes. */
export function toSource(context: Readonly<Record<string, unknown>>): ProjectSource {
  const { data: skills } = SkillsDirectory.safeParse(context.skills);
  const { data: mcp } = ServersPath.safeParse(context.mcp);
  return {
    settings: pickSettings(context),
    skills: skills === undefined ? [] : [skills],
    servers:
      mcp === undefined
        ? { value: { mcpServers: {} } }
        : { path: mcp, name: mcp, namedBy: "mcp" in context ? "mcp" : undefined },
    toOwnWords: toContextWords,
  };
}

/** The key and the topic that the settings name are the construct's to find. */
export function toCheckedProps(project: CheckedProject, functionsCode: string): CheckedProps {
  const { encryptionKeyArn: encryptionKey, alarmTopicArn: alarmTopic } = project.settings;
  return new CheckedProps(project, { encryptionKey, alarmTopic, functionsCode });
}
