import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { type CheckedProps, SkillBroker } from "./skillbroker.ts";
import type { SkillBrokerProps } from "./skillbroker-props.ts";

export type SkillBrokerStackProps = StackProps & {
  /** What the one {@link SkillBroker} of the stack is made from. */
  readonly service: SkillBrokerProps | CheckedProps;
};

/** A stack with one {@link SkillBroker} in it, and what its users need to know of it as outputs. */
export class SkillBrokerStack extends Stack {
  readonly service: SkillBroker;

  constructor(scope: Construct, id: string, { service, ...props }: SkillBrokerStackProps) {
    super(scope, id, { description: "skillbroker: runs approved, digest-pinned skills as jobs", ...props });
    // The CDK leaves this name out of the ids of resources, so that they are the same as directly in the stack.
    this.service = new SkillBroker(this, "Default", service);
    const { url, bucket, notificationsQueue, jobsQueue } = this.service;
    const outputs = {
      ApiUrl: { value: url, description: "address of the HTTP API" },
      BucketName: { value: bucket.bucketName, description: "where artifacts and jobs are" },
      NotificationsQueueUrl: {
        value: notificationsQueue.queueUrl,
        description: "where notifications go that do not come over HTTP",
      },
      JobsQueueUrl: { value: jobsQueue.queueUrl, description: "where asynchronous jobs wait" },
    };
    for (const [name, output] of Object.entries(outputs)) new CfnOutput(this, name, output);
  }
}
