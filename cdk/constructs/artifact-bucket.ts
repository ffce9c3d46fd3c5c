import { Duration, RemovalPolicy } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import {
  ARTIFACTS_PREFIX,
  CATALOG_KEY,
  DEBOUNCE_PREFIX,
  JOBS_PREFIX,
  toLifecycle,
} from "../../functions/contract/store-layout.ts";
import type { FunctionName } from "../entry-points.ts";

/**
 * Artifacts, job records, the published catalog and what the debounce remembers. Nobody reaches them but the functions
 * and whoever holds a link that one of them signed; files go away by themselves, and deleting the stack deletes nobody's
 * files.
 */
export class ArtifactBucket extends Construct {
  readonly bucket: Bucket;

  constructor(scope: Construct, id: string, { artifactDays }: { readonly artifactDays: number }) {
    super(scope, id);
    this.bucket = new Bucket(this, "Bucket", {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      encryption: BucketEncryption.S3_MANAGED,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
      removalPolicy: RemovalPolicy.RETAIN,
      lifecycleRules: [
        ...toLifecycle(artifactDays).map(({ prefix, days }) => ({
          id: `expire-${prefix.replace("/", "")}`,
          prefix,
          expiration: Duration.days(days),
        })),
        { id: "abort-uploads", abortIncompleteMultipartUploadAfter: Duration.days(1) },
      ],
    });
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
}

/** Keys in the bucket, `*` at the end for all that begin so. */
export type StoreAccess = {
  readonly read: readonly string[];
  readonly write?: readonly string[];
  readonly remove?: readonly string[];
};

const ARTIFACTS = `${ARTIFACTS_PREFIX}*`;
const JOBS = `${JOBS_PREFIX}*`;
const DEBOUNCE = `${DEBOUNCE_PREFIX}*`;

/** What each function does to the store: records are written anew, never deleted. */
export const STORE_ACCESS: Readonly<Record<FunctionName, StoreAccess>> = {
  http: { read: [ARTIFACTS, JOBS, CATALOG_KEY], write: [ARTIFACTS, JOBS, CATALOG_KEY], remove: [ARTIFACTS] },
  notify: { read: [DEBOUNCE], write: [DEBOUNCE] },
  refresh: { read: [CATALOG_KEY, DEBOUNCE], write: [CATALOG_KEY] },
  reconcile: { read: [CATALOG_KEY] },
};
