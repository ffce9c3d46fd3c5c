import { Duration, RemovalPolicy } from "aws-cdk-lib";
import { PolicyDocument, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Architecture, Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { FilterPattern, LogGroup, MetricFilter, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type { HttpEnv } from "../../functions/contract/env.ts";
import type { OperatorSettings } from "../../functions/contract/settings.ts";
import { ENTRY_NAME } from "../bundle.ts";
import { toEnvironment } from "../deploy-settings.ts";
import { FUNCTION_SECONDS } from "../timeouts.ts";
import type { ArtifactBucket } from "./artifact-bucket.ts";

/** From here on a function has one whole processor; reading code, checking skills and drawing pages take nothing else. */
const MEMORY_MIB = 1769;

export type HttpFunctionProps = {
  readonly settings: OperatorSettings;
  /** Directory of the bundle. */
  readonly code: string;
  readonly store: ArtifactBucket;
};

/** The function behind all HTTP routes, with a role of its own: the managed policy for logs allows every log group. */
export class HttpFunction extends Construct {
  readonly handler: LambdaFunction;

  constructor(scope: Construct, id: string, { settings, code, store }: HttpFunctionProps) {
    super(scope, id);
    const logGroup = new LogGroup(this, "Log", {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    countInLog(this, logGroup);
    const role = new Role(this, "Role", {
      assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
      inlinePolicies: { Store: new PolicyDocument({ statements: [...store.accessStatements()] }) },
    });
    logGroup.grantWrite(role);
    this.handler = new LambdaFunction(this, "Function", {
      description: "skillbroker: every HTTP route",
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      memorySize: MEMORY_MIB,
      timeout: Duration.seconds(FUNCTION_SECONDS),
      code: Code.fromAsset(code),
      handler: `${ENTRY_NAME}.handler`,
      role,
      logGroup,
      environment: {
        BUCKET_NAME: store.bucket.bucketName,
        ...toEnvironment(settings),
      } satisfies Record<keyof HttpEnv, string>,
    });
  }
}

const METRIC_NAMESPACE = "skillbroker";

/** Counted from the log, so that the function calls nothing for it; 0 where there is nothing to count, so that silence shows. */
function countInLog(scope: Construct, logGroup: LogGroup): void {
  const counted = [
    { metricName: "RepositoryRefused", filterPattern: FilterPattern.stringValue("$.code", "=", "REPOSITORY_REFUSED") },
    { metricName: "Errors", filterPattern: FilterPattern.stringValue("$.level", "=", "error") },
  ];
  for (const { metricName, filterPattern } of counted) {
    new MetricFilter(scope, metricName, {
      logGroup,
      metricNamespace: METRIC_NAMESPACE,
      metricName,
      filterPattern,
      metricValue: "1",
      defaultValue: 0,
    });
  }
}
