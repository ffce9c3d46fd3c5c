import { Duration, RemovalPolicy } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";
import { ARTIFACTS_PREFIX, JOBS_PREFIX, toLifecycle } from "../../functions/contract/store-layout.ts";

/**
 * Artifacts and job records. Nobody reaches them but the function and whoever holds a link that it signed; files go
 * away by themselves, and deleting the stack deletes nobody's files.
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

  /** What the job store does and nothing else: records are written anew, never deleted. */
  accessStatements(): readonly PolicyStatement[] {
    const { bucket } = this;
    const prefixes = [ARTIFACTS_PREFIX, JOBS_PREFIX].map((prefix) => `${prefix}*`);
    return [
      new PolicyStatement({
        sid: "ReadAndWriteObjects",
        actions: ["s3:GetObject", "s3:PutObject"],
        resources: prefixes.map((prefix) => bucket.arnForObjects(prefix)),
      }),
      new PolicyStatement({
        sid: "DeleteArtifacts",
        actions: ["s3:DeleteObject"],
        resources: [bucket.arnForObjects(`${ARTIFACTS_PREFIX}*`)],
      }),
      new PolicyStatement({
        sid: "ListObjects",
        actions: ["s3:ListBucket"],
        resources: [bucket.bucketArn],
        // S3 answers 404 for a missing object only to who may list, otherwise 403. A request for one object need not
        // carry a prefix, so the condition holds where there is none.
        conditions: { StringLikeIfExists: { "s3:prefix": prefixes } },
      }),
    ];
  }
}
