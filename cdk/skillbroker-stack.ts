import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { ArtifactBucket } from "./constructs/artifact-bucket.ts";
import { addHttpFunction } from "./constructs/http-function.ts";
import { JobApi } from "./constructs/job-api.ts";
import { RefreshPath } from "./constructs/refresh-path.ts";
import { RefreshQueues } from "./constructs/refresh-queues.ts";
import type { ServiceParts } from "./constructs/service-function.ts";

export type SkillBrokerStackProps = StackProps & Pick<ServiceParts, "settings" | "bundles" | "servers">;

/** The whole service. It reads neither account nor region, so that it can be synthesised anywhere. */
export class SkillBrokerStack extends Stack {
  constructor(scope: Construct, id: string, { settings, bundles, servers, ...props }: SkillBrokerStackProps) {
    super(scope, id, { description: "skillbroker: runs approved, digest-pinned skills as jobs", ...props });
    const store = new ArtifactBucket(this, "Store", settings);
    const queues = new RefreshQueues(this, "Queues", settings);
    const parts = { settings, bundles, servers, store, queues };
    const { handler } = addHttpFunction(this, "Http", parts);
    new RefreshPath(this, "RefreshPath", parts);
    const { url } = new JobApi(this, "Api", { handler, auth: settings.auth });
    const outputs = {
      ApiUrl: { value: url, description: "address of the HTTP API" },
      BucketName: { value: store.bucket.bucketName, description: "where artifacts and jobs are" },
      NotificationsQueueUrl: {
        value: queues.notifications.queueUrl,
        description: "where notifications go that do not come over HTTP",
      },
    };
    for (const [name, output] of Object.entries(outputs)) new CfnOutput(this, name, output);
  }
}
