import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import type { OperatorSettings } from "../functions/contract/settings.ts";
import { ArtifactBucket } from "./constructs/artifact-bucket.ts";
import { HttpFunction } from "./constructs/http-function.ts";
import { JobApi } from "./constructs/job-api.ts";

export type SkillBrokerStackProps = StackProps & {
  readonly settings: OperatorSettings;
  /** Directory of the bundle for the HTTP function. */
  readonly httpCode: string;
};

/** The whole service. It reads neither account nor region, so that it can be synthesised anywhere. */
export class SkillBrokerStack extends Stack {
  constructor(scope: Construct, id: string, { settings, httpCode, ...props }: SkillBrokerStackProps) {
    super(scope, id, { description: "skillbroker: runs approved, digest-pinned skills as jobs", ...props });
    const store = new ArtifactBucket(this, "Store", settings);
    const { handler } = new HttpFunction(this, "Http", { settings, code: httpCode, store });
    const { url } = new JobApi(this, "Api", { handler, auth: settings.auth });
    new CfnOutput(this, "ApiUrl", { value: url, description: "address of the HTTP API" });
    new CfnOutput(this, "BucketName", { value: store.bucket.bucketName, description: "where artifacts and jobs are" });
  }
}
