import { Duration, RemovalPolicy } from "aws-cdk-lib";
import { PolicyDocument, type PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import {
  Architecture,
  Code,
  type FunctionOptions,
  Function as LambdaFunction,
  RecursiveLoop,
  Runtime,
} from "aws-cdk-lib/aws-lambda";
import { FilterPattern, LogGroup, MetricFilter, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type { OperatorSettings } from "../../functions/contract/settings.ts";
import { type Bundle, ENTRY_NAME } from "../bundle.ts";
import type { FunctionName } from "../entry-points.ts";
import type { DeclaredServers } from "../mcp-servers.ts";
import type { ArtifactBucket } from "./artifact-bucket.ts";
import type { RefreshQueues } from "./refresh-queues.ts";

/** What the functions are made from and what they share. */
export type ServiceParts = {
  readonly settings: OperatorSettings;
  readonly bundles: Readonly<Record<FunctionName, Pick<Bundle, "directory">>>;
  readonly servers: Pick<DeclaredServers, "names" | "secrets">;
  readonly store: ArtifactBucket;
  readonly queues: RefreshQueues;
};

/** From here on a function has one whole processor; reading code, checking skills and drawing pages take nothing else. */
export const WHOLE_PROCESSOR_MIB = 1769;

export type ServiceFunctionProps = Pick<FunctionOptions, "retryAttempts"> & {
  readonly description: string;
  /** Directory of the bundle. */
  readonly code: string;
  readonly memoryMiB: number;
  readonly timeoutSeconds: number;
  readonly environment: Readonly<Record<string, string>>;
  /** All that it may do beside writing its own log. */
  readonly statements: readonly PolicyStatement[];
  readonly counted: readonly CountedLines[];
};

/** Lines of a function's log whose field has this value are counted in a metric. */
export type CountedLines = { readonly metric: string; readonly field: "code" | "level"; readonly value: string };

export const ERRORS: CountedLines = { metric: "Errors", field: "level", value: "error" };
export const REFUSED_REPOSITORIES: CountedLines = {
  metric: "RepositoryRefused",
  field: "code",
  value: "REPOSITORY_REFUSED",
};
export const UNAVAILABLE_SERVERS: CountedLines = {
  metric: "ServerUnavailable",
  field: "code",
  value: "SERVER_UNAVAILABLE",
};

/** A function with a role and a log of its own: the managed policy for logs allows every log group. */
export class ServiceFunction extends Construct {
  readonly handler: LambdaFunction;

  constructor(scope: Construct, id: string, props: ServiceFunctionProps) {
    super(scope, id);
    const { code, memoryMiB, timeoutSeconds, statements, counted, ...options } = props;
    const logGroup = new LogGroup(this, "Log", {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    for (const lines of counted) countInLog(this, logGroup, lines);
    const role = new Role(this, "Role", {
      assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
      inlinePolicies: { Own: new PolicyDocument({ statements: [...statements] }) },
    });
    logGroup.grantWrite(role);
    this.handler = new LambdaFunction(this, "Function", {
      ...options,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      memorySize: memoryMiB,
      timeout: Duration.seconds(timeoutSeconds),
      code: Code.fromAsset(code),
      handler: `${ENTRY_NAME}.handler`,
      // AWS's default, said here because it is relied upon: no chain through the queues is longer than two functions.
      recursiveLoop: RecursiveLoop.TERMINATE,
      role,
      logGroup,
    });
  }
}

const METRIC_NAMESPACE = "skillbroker";

/** Counted from the log, so that the function calls nothing for it; 0 where there is nothing to count, so that silence shows. */
function countInLog(scope: Construct, logGroup: LogGroup, { metric, field, value }: CountedLines): void {
  new MetricFilter(scope, metric, {
    logGroup,
    metricNamespace: METRIC_NAMESPACE,
    metricName: metric,
    filterPattern: FilterPattern.stringValue(`$.${field}`, "=", value),
    metricValue: "1",
    defaultValue: 0,
  });
}
