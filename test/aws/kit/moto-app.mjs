import { join } from "node:path";
import { App, DefaultStackSynthesizer } from "aws-cdk-lib";
import { CfnDashboard } from "aws-cdk-lib/aws-cloudwatch";
import { CfnQueue } from "aws-cdk-lib/aws-sqs";
import { CURRENTLY_RECOMMENDED_FLAGS } from "aws-cdk-lib/cx-api";
import { buildFunctions } from "../../../cdk/build-functions.ts";
import { PACKAGE_ROOT } from "../../../cdk/package-places.ts";
import { SkillBrokerStack } from "../../../cdk/skillbroker-stack.ts";

/**
 * The stack as moto can deploy it. CloudFormation gives an ordered queue a name that ends in `.fifo`, moto does not;
 * and the rule that asks for the version of the bootstrap stack is a parameter that moto does not look up in an update;
 * and it makes no alarms, so that the dashboard would show what is not there. Nothing else differs from the ready app.
 * `SKILLBROKER_TEST_SERVICE` is the service's props as JSON.
 */

const app = new App({ autoSynth: false, context: CURRENTLY_RECOMMENDED_FLAGS });
const functionsCode = join(app.outdir, "code");
await buildFunctions({ root: PACKAGE_ROOT, directory: functionsCode });
const stack = new SkillBrokerStack(app, "SkillBroker", {
  synthesizer: new DefaultStackSynthesizer({ generateBootstrapVersionRule: false }),
  service: { ...JSON.parse(process.env.SKILLBROKER_TEST_SERVICE ?? "{}"), functionsCode },
});
for (const queue of stack.node.findAll().filter((each) => each instanceof CfnQueue)) {
  if (queue.fifoQueue === true) queue.queueName = `${stack.resolve(queue.logicalId)}.fifo`;
}
for (const dashboard of stack.node.findAll().filter((each) => each instanceof CfnDashboard)) {
  dashboard.node.scope.node.tryRemoveChild(dashboard.node.id);
}
app.synth();
