import { Aws, Duration, RemovalPolicy, Stack } from "aws-cdk-lib";
import { PolicyStatement, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import {
  BlockPublicAccess,
  Bucket,
  BucketEncryption,
  type BucketProps,
  CfnBucket,
  type LifecycleRule,
  ObjectOwnership,
} from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import type { OperatorSettings } from "../../functions/contract/settings.ts";
import {
  ARTIFACTS_PREFIX,
  CATALOG_KEY,
  DEBOUNCE_PREFIX,
  IDEMPOTENCY_PREFIX,
  JOBS_PREFIX,
  REQUESTS_PREFIX,
  toLifecycle,
} from "../../functions/contract/store-layout.ts";
import type { FunctionName } from "../entry-points.ts";
import type { Excuse } from "../nag-suppressions.ts";

export type ArtifactBucketProps = Pick<OperatorSettings, "artifactDays" | "logDays" | "dataAtRemoval"> & {
  /** Undefined: the service's own key. */
  readonly encryptionKey?: IKey | undefined;
};

/**
 * Artifacts, job records, the published catalog and what the debounce remembers. Nobody reaches them but the functions
 * and whoever holds a link that one of them signed; files go away by themselves, and deleting the stack deletes
 * nobody's files unless that was chosen.
 */
export class ArtifactBucket extends Construct {
  readonly bucket: Bucket;
  /** Who asked the bucket for what, as S3 writes it down: the one account of links that were followed. */
  readonly accessLogs: Bucket;

  constructor(scope: Construct, id: string, props: ArtifactBucketProps) {
    super(scope, id);
    this.accessLogs = new Bucket(this, "AccessLogs", {
      ...closedAndGoing(props),
      // S3 delivers logs to no bucket that a key of KMS encrypts by default.
      encryption: BucketEncryption.S3_MANAGED,
      lifecycleRules: [{ id: "expire", expiration: Duration.days(props.logDays) }, ABORT_UPLOADS],
    });
    this.bucket = new Bucket(this, "Bucket", {
      ...closedAndGoing(props),
      ...encryptBy(props.encryptionKey),
      lifecycleRules: [
        ...toLifecycle(props.artifactDays).map(({ prefix, days }) => ({
          id: `expire-${prefix.replace("/", "")}`,
          prefix,
          expiration: Duration.days(days),
        })),
        ABORT_UPLOADS,
      ],
    });
    logAccess(this.bucket, this.accessLogs);
  }

  /** No more than the keys given: each function has its own. */
  toStatements({ read, write = [], remove = [] }: StoreAccess): readonly PolicyStatement[] {
    const { bucket } = this;
    const allow = (action: string, keys: readonly string[]) =>
      keys.length === 0
        ? []
        : [new PolicyStatement({ actions: [action], resources: keys.map((key) => bucket.arnForObjects(key)) })];
    return [
      ...allow("s3:GetObject", read),
      ...allow("s3:PutObject", write),
      ...allow("s3:DeleteObject", remove),
      new PolicyStatement({
        sid: "ListObjects",
        actions: ["s3:ListBucket"],
        resources: [bucket.bucketArn],
        // S3 answers 404 for a missing object only to who may list, otherwise 403. A request for one object need not
        // carry a prefix, so the condition holds where there is none.
        conditions: { StringLikeIfExists: { "s3:prefix": read } },
      }),
    ];
  }

  /** The wildcards of these statements, as the rule writes references. */
  toExcuses({ read, write = [], remove = [] }: StoreAccess): readonly Excuse[] {
    const id = Stack.of(this).getLogicalId(cfnBucketOf(this.bucket));
    const prefixes = [...new Set([...read, ...write, ...remove])].filter((key) => key.endsWith("*"));
    return prefixes.map((key) => ({
      finding: `Resource::<${id}.Arn>/${key}`,
      reason: `Objects below ${key.slice(0, -1)} are named by ids when they are made, and nothing else is below it.`,
    }));
  }
}

/** The CfnBucket is what CloudFormation sees of a bucket. */
function cfnBucketOf(bucket: Bucket): CfnBucket {
  const cfnBucket = bucket.node.defaultChild;
  if (!(cfnBucket instanceof CfnBucket)) throw new TypeError("a bucket is made of a CfnBucket");
  return cfnBucket;
}

const ABORT_UPLOADS: LifecycleRule = {
  id: "abort-uploads",
  abortIncompleteMultipartUploadAfter: Duration.days(1),
};

function closedAndGoing({ dataAtRemoval }: Pick<OperatorSettings, "dataAtRemoval">): BucketProps {
  return {
    blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
    enforceSSL: true,
    minimumTLSVersion: 1.2,
    objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
    // CloudFormation cannot delete a bucket that holds anything.
    ...(dataAtRemoval === "delete"
      ? { removalPolicy: RemovalPolicy.DESTROY, autoDeleteObjects: true }
      : { removalPolicy: RemovalPolicy.RETAIN }),
  };
}

/** With a key of the bucket's own, so that not each request for an object is one to KMS. */
function encryptBy(encryptionKey: IKey | undefined): BucketProps {
  if (encryptionKey === undefined) return { encryption: BucketEncryption.S3_MANAGED };
  return { encryption: BucketEncryption.KMS, encryptionKey, bucketKeyEnabled: true };
}

/**
 * S3 may write to the log bucket in the name of this one bucket. By a policy: the CDK's own way is an access control
 * list unless the app has a feature flag, and here such lists are off.
 */
function logAccess(bucket: Bucket, accessLogs: Bucket): void {
  cfnBucketOf(bucket).loggingConfiguration = { destinationBucketName: accessLogs.bucketName };
  accessLogs.addToResourcePolicy(
    new PolicyStatement({
      sid: "DeliverAccessLogs",
      principals: [new ServicePrincipal("logging.s3.amazonaws.com")],
      actions: ["s3:PutObject"],
      resources: [accessLogs.arnForObjects("*")],
      conditions: {
        ArnEquals: { "aws:SourceArn": bucket.bucketArn },
        StringEquals: { "aws:SourceAccount": Aws.ACCOUNT_ID },
      },
    }),
  );
}

/** Keys in the bucket, `*` at the end for all that begin so. */
export type StoreAccess = {
  readonly read: readonly string[];
  readonly write?: readonly string[];
  readonly remove?: readonly string[];
};

const ARTIFACTS = `${ARTIFACTS_PREFIX}*`;
const JOBS = `${JOBS_PREFIX}*`;
const REQUESTS = `${REQUESTS_PREFIX}*`;
const IDEMPOTENCY = `${IDEMPOTENCY_PREFIX}*`;
const DEBOUNCE = `${DEBOUNCE_PREFIX}*`;

/** What each function does to the store: records are written anew, never deleted. */
export const STORE_ACCESS: Readonly<Record<FunctionName, StoreAccess>> = {
  http: {
    read: [ARTIFACTS, JOBS, IDEMPOTENCY, CATALOG_KEY],
    write: [ARTIFACTS, JOBS, IDEMPOTENCY, REQUESTS, CATALOG_KEY],
    remove: [ARTIFACTS, REQUESTS],
  },
  worker: {
    read: [ARTIFACTS, JOBS, REQUESTS, CATALOG_KEY],
    write: [ARTIFACTS, JOBS],
    remove: [ARTIFACTS, REQUESTS],
  },
  "dead-jobs": { read: [JOBS], write: [JOBS], remove: [REQUESTS] },
  notify: { read: [DEBOUNCE], write: [DEBOUNCE] },
  refresh: { read: [CATALOG_KEY, DEBOUNCE], write: [CATALOG_KEY] },
  reconcile: { read: [CATALOG_KEY] },
};
