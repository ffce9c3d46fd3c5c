import { Duration } from "aws-cdk-lib";
import { PolicyDocument, PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import {
  Architecture,
  Code,
  type FunctionOptions,
  Function as LambdaFunction,
  RecursiveLoop,
  Runtime,
  Tracing,
} from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import type {
  DeadJobsEnv,
  HttpEnv,
  NotifyEnv,
  ReconcileEnv,
  RefreshEnv,
  WorkerEnv,
} from "../../functions/contract/env.ts";
import type { OperatorSettings } from "../../functions/contract/settings.ts";
import { type Bundles, ENTRY_NAME } from "../bundle.ts";
import type { FunctionName } from "../entry-points.ts";
import type { DeclaredServers } from "../mcp-servers.ts";
import { type Excuse, excuseWildcard } from "../nag-suppressions.ts";
import { type ArtifactBucket, STORE_ACCESS } from "./artifact-bucket.ts";
import { addLogGroup } from "./log-group.ts";
import { COUNTED, countInLog } from "./metrics.ts";
import type { RefreshQueues } from "./refresh-queues.ts";
import { READS_SECRETS, toSecretExcuses, toSecretStatements } from "./secret-access.ts";

/** What the functions are made from and what they share. */
export type ServiceParts = {
  readonly settings: OperatorSettings;
  readonly bundles: Bundles;
  readonly servers: Pick<DeclaredServers, "names" | "secrets">;
  readonly store: ArtifactBucket;
  readonly queues: RefreshQueues;
  /** Customer managed key of bucket and queues; undefined: keys of the services. */
  readonly encryptionKey: IKey | undefined;
  /** Of the metrics that are counted from the logs. */
  readonly namespace: string;
};

/**
 * From here on a function has one whole processor; reading code, checking skills and drawing pages take nothing else.
 */
export const WHOLE_PROCESSOR_MIB = 1769;
/** For functions that wait for AWS most of the time. */
export const SMALL_MIB = 512;

/** The schema that each function parses its environment by. */
type Environments = {
  readonly http: HttpEnv;
  readonly worker: WorkerEnv;
  readonly "dead-jobs": DeadJobsEnv;
  readonly notify: NotifyEnv;
  readonly refresh: RefreshEnv;
  readonly reconcile: ReconcileEnv;
};

/** By its name a function is given every variable that its code reads: one that is missing does not compile. */
type Named<Name extends FunctionName> = {
  readonly name: Name;
  /** Beside the name of the bucket, which every function has. */
  readonly environment: Readonly<Record<Exclude<keyof Environments[Name], "BUCKET_NAME">, string>>;
};

export type ServiceFunctionProps = { [Name in FunctionName]: Named<Name> }[FunctionName] & CommonProps;

type CommonProps = Pick<FunctionOptions, "retryAttempts" | "reservedConcurrentExecutions"> & {
  readonly parts: ServiceParts;
  readonly description: string;
  readonly memoryMiB: number;
  readonly timeoutSeconds: number;
  /**
   * All that it may do beside what its name lets it do to the store and the secrets of servers, its log and its traces.
   */
  readonly statements: readonly PolicyStatement[];
};

/** A function with a role and a log of its own: the managed policy for logs allows every log group. */
export class ServiceFunction extends Construct {
  readonly handler: LambdaFunction;

  constructor(scope: Construct, id: string, props: ServiceFunctionProps) {
    super(scope, id);
    const { name, parts, memoryMiB, timeoutSeconds, environment, statements: _, ...options } = props;
    const logGroup = addLogGroup(this, "Log", { ...parts, days: parts.settings.logDays });
    for (const metric of COUNTED[name]) countInLog(this, logGroup, { metric, namespace: parts.namespace });
    const role = addRole(this, props);
    logGroup.grantWrite(role);
    this.handler = new LambdaFunction(this, "Function", {
      ...options,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      memorySize: memoryMiB,
      timeout: Duration.seconds(timeoutSeconds),
      environment: { ...environment, BUCKET_NAME: parts.store.bucket.bucketName },
      code: Code.fromAsset(parts.bundles[name].directory),
      handler: `${ENTRY_NAME}.handler`,
      // AWS's default, said here because it is relied upon: no chain through the queues is longer than two functions.
      recursiveLoop: RecursiveLoop.TERMINATE,
      tracing: Tracing.ACTIVE,
      role,
      logGroup,
    });
  }
}

/** May do what its function does, and says of each wildcard why it is one. */
function addRole(scope: Construct, { name, parts, statements }: ServiceFunctionProps): Role {
  const { store, servers, encryptionKey } = parts;
  const access = STORE_ACCESS[name];
  const secrets = READS_SECRETS[name] ? servers.secrets : [];
  const own = [
    ...store.toStatements(access),
    ...toKeyStatements(encryptionKey),
    ...toSecretStatements(secrets),
    ...statements,
  ];
  const role = new Role(scope, "Role", {
    assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
    inlinePolicies: { Own: new PolicyDocument({ statements: own }) },
  });
  const excuses = [TRACES, ...store.toExcuses(access), ...toSecretExcuses(secrets)];
  for (const excuse of excuses) excuseWildcard(role, excuse);
  return role;
}

/** Every function both reads what others encrypted and writes to the bucket or sends to a queue. */
function toKeyStatements(key: IKey | undefined): readonly PolicyStatement[] {
  if (key === undefined) return [];
  return [new PolicyStatement({ actions: ["kms:Decrypt", "kms:GenerateDataKey"], resources: [key.keyArn] })];
}

const TRACES: Excuse = {
  finding: "Resource::*",
  reason: "The two actions that send traces to X-Ray know no resources: AWS takes nothing but * for them.",
};
