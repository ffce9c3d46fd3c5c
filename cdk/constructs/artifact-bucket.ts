import { Duration, RemovalPolicy } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";

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
        { id: "expire-artifacts", prefix: ARTIFACTS, expiration: Duration.days(artifactDays) },
        { id: "expire-jobs", prefix: JOBS, expiration: Duration.days(artifactDays + RECORD_DAYS) },
        { id: "abort-uploads", abortIncompleteMultipartUploadAfter: Duration.days(1) },
      ],
    });
  }

  /** What the job store does and nothing else: records are written anew, never deleted. */
  accessStatements(): readonly PolicyStatement[] {
    const { bucket } = this;
    const prefixes = [ARTIFACTS, JOBS].map((prefix) => `${prefix}*`);
    return [
      new PolicyStatement({
        sid: "ReadAndWriteObjects",
        actions: ["s3:GetObject", "s3:PutObject"],
        resources: prefixes.map((prefix) => bucket.arnForObjects(prefix)),
      }),
      new PolicyStatement({
        sid: "DeleteArtifacts",
        actions: ["s3:DeleteObject"],
        resources: [bucket.arnForObjects(`${ARTIFACTS}*`)],
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

/** Key prefixes of `functions/job/job-store.ts`. */
const ARTIFACTS = "artifacts/";
const JOBS = "jobs/";

/** Days that a record outlives its files, so that a report can still say what they were. */
const RECORD_DAYS = 30;
