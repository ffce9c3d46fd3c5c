import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { type Properties, resourcesOf, type StackChoices, stackMaker, toWords } from "../kit/stack-template.ts";

const makeStack = stackMaker();
const toTemplate = (choices?: StackChoices) => Template.fromStack(makeStack(choices));
const template = toTemplate();
const bucketOf = (name: string, from = template) => resourcesOf(from, "AWS::S3::Bucket").get(name);
const NAMES = ["StoreBucket", "StoreAccessLogs"];
const KEY = "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-12ab-34cd-56ef-1234567890ab";

/** The statements of the policy of a bucket, by what they are about. */
function statementsOf(name: string, from = template): readonly Properties[] {
  const policies = [...resourcesOf(from, "AWS::S3::BucketPolicy").values()];
  return policies
    .filter(({ Bucket }) => toWords(Bucket) === name)
    .flatMap(({ PolicyDocument }) => PolicyDocument.Statement);
}

describe("each bucket", () => {
  test("there are two: that of the files, and that of its access logs", () => {
    expect([...resourcesOf(template, "AWS::S3::Bucket").keys()].sort()).toEqual(NAMES.toSorted());
  });

  test.each(NAMES)("%s is closed to the public, encrypted, and owned by its account alone", (name) => {
    expect(bucketOf(name)).toMatchObject({
      PublicAccessBlockConfiguration: {
        BlockPublicAcls: true,
        BlockPublicPolicy: true,
        IgnorePublicAcls: true,
        RestrictPublicBuckets: true,
      },
      OwnershipControls: { Rules: [{ ObjectOwnership: "BucketOwnerEnforced" }] },
      BucketEncryption: {
        ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: "AES256" } }],
      },
    });
    const keys = Object.keys(bucketOf(name)).filter((key) => /Website|Cors|AccessControl|BucketName/.test(key));
    expect(keys).toEqual([]);
  });

  test.each(NAMES)("%s denies what does not come over TLS 1.2", (name) => {
    const denied = statementsOf(name).filter(({ Effect }) => Effect === "Deny");
    expect(denied.map(({ Action, Principal, Condition }) => ({ Action, Principal, Condition }))).toEqual([
      { Action: "s3:*", Principal: { AWS: "*" }, Condition: { Bool: { "aws:SecureTransport": "false" } } },
      { Action: "s3:*", Principal: { AWS: "*" }, Condition: { NumericLessThan: { "s3:TlsVersion": 1.2 } } },
    ]);
    for (const { Resource } of denied) expect(Resource.map(toWords)).toEqual([`${name}.Arn`, `${name}.Arn/*`]);
  });
});

describe("requests for files", () => {
  test("are logged, by S3 alone and in the name of this bucket alone", () => {
    expect(toWords(bucketOf("StoreBucket").LoggingConfiguration.DestinationBucketName)).toBe("StoreAccessLogs");
    const allowed = statementsOf("StoreAccessLogs").filter(({ Effect }) => Effect === "Allow");
    expect(allowed).toHaveLength(1);
    const { Action, Principal, Resource, Condition } = allowed[0];
    expect({ Action, Principal, Resource: toWords(Resource) }).toEqual({
      Action: "s3:PutObject",
      Principal: { Service: "logging.s3.amazonaws.com" },
      Resource: "StoreAccessLogs.Arn/*",
    });
    expect(toWords(Condition.ArnEquals["aws:SourceArn"])).toBe("StoreBucket.Arn");
    expect(toWords(Condition.StringEquals["aws:SourceAccount"])).toBe("<AccountId>");
  });

  test("nobody else is let in by a policy of the buckets", () => {
    expect(statementsOf("StoreBucket").filter(({ Effect }) => Effect !== "Deny")).toEqual([]);
  });

  test.each([
    ["a month, when nothing is chosen", {}, 30],
    ["as long as other logs", { logDays: 7 }, 7],
  ])("stay in the log for %s", (_, settings, days) => {
    const { LifecycleConfiguration } = bucketOf("StoreAccessLogs", toTemplate({ settings }));
    expect(LifecycleConfiguration.Rules).toEqual([
      { Id: "expire", ExpirationInDays: days, Status: "Enabled" },
      { Id: "abort-uploads", AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 }, Status: "Enabled" },
    ]);
  });
});

test.each([
  ["seven days, when nothing is chosen", {}, 7],
  ["as many days as were chosen", { artifactDays: 30 }, 30],
])(
  "files are kept %s, records for a month more, and what serves only for a while goes by itself",
  (_, settings, days) => {
    const { LifecycleConfiguration } = bucketOf("StoreBucket", toTemplate({ settings }));
    expect(LifecycleConfiguration.Rules.map(({ Id: _, ...rule }: { Id: string }) => rule)).toEqual([
      { Prefix: "artifacts/", ExpirationInDays: days, Status: "Enabled" },
      { Prefix: "jobs/", ExpirationInDays: days + 30, Status: "Enabled" },
      { Prefix: "debounce/", ExpirationInDays: 7, Status: "Enabled" },
      { Prefix: "requests/", ExpirationInDays: 30, Status: "Enabled" },
      { Prefix: "idempotency/", ExpirationInDays: 7, Status: "Enabled" },
      { AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 }, Status: "Enabled" },
    ]);
  },
);

describe("when the stack goes", () => {
  const policiesIn = (from: Template) =>
    Object.values(from.findResources("AWS::S3::Bucket")).map(({ DeletionPolicy, UpdateReplacePolicy }) => ({
      DeletionPolicy,
      UpdateReplacePolicy,
    }));

  test("files and access logs stay, and nothing is there that could empty a bucket", () => {
    const kept = { DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain" };
    expect(policiesIn(template)).toEqual([kept, kept]);
    expect(template.findResources("Custom::S3AutoDeleteObjects")).toEqual({});
  });

  test("both go when that was chosen, emptied first, since a bucket that holds anything cannot be deleted", () => {
    const deleting = toTemplate({ settings: { dataAtRemoval: "delete" } });
    const gone = { DeletionPolicy: "Delete", UpdateReplacePolicy: "Delete" };
    expect(policiesIn(deleting)).toEqual([gone, gone]);
    const emptied = [...resourcesOf(deleting, "Custom::S3AutoDeleteObjects").values()];
    expect(emptied.map(({ BucketName }) => toWords(BucketName)).sort()).toEqual(NAMES.toSorted());
  });
});

describe("with a key of the operator's", () => {
  const encrypted = toTemplate({ settings: { encryptionKeyArn: KEY } });

  test("the files are under it, by a key of the bucket's own", () => {
    expect(bucketOf("StoreBucket", encrypted).BucketEncryption.ServerSideEncryptionConfiguration).toEqual([
      { BucketKeyEnabled: true, ServerSideEncryptionByDefault: { SSEAlgorithm: "aws:kms", KMSMasterKeyID: KEY } },
    ]);
  });

  test("the access logs are under S3's own, because to another bucket S3 delivers none", () => {
    expect(bucketOf("StoreAccessLogs", encrypted)).toEqual(bucketOf("StoreAccessLogs"));
  });
});
