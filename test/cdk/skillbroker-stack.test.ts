import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { toEnvironment } from "../../cdk/deploy-settings.ts";
import { SkillBrokerStack } from "../../cdk/skillbroker-stack.ts";
import { MAX_JOB_TIMEOUT_MS } from "../../cdk/timeouts.ts";
import { ROUTES } from "../../functions/contract/api.ts";
import { HttpEnv, parseEnv } from "../../functions/contract/env.ts";
import { DEFAULT_LIMITS } from "../../functions/contract/limits.ts";
import { OperatorSettings } from "../../functions/contract/settings.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

const httpCode = join(makeTempDirectory(), "code");
mkdirSync(httpCode);
writeFileSync(join(httpCode, "index.mjs"), "export const handler = async () => ({});\n");

function makeStack(settings: Readonly<Record<string, unknown>> = {}): SkillBrokerStack {
  return new SkillBrokerStack(new App(), "SkillBroker", { settings: OperatorSettings.parse(settings), httpCode });
}

const stack = makeStack({ tools: ["local", "data_table@1"] });
const template = Template.fromStack(stack);
const propertiesOf = (type: string, from = template) =>
  Object.values(from.findResources(type)).map(({ Properties }) => Properties);
const onlyPropertiesOf = (type: string, from = template) => {
  const all = propertiesOf(type, from);
  expect(all).toHaveLength(1);
  return all[0];
};

test("knows neither account nor region", () => {
  expect(JSON.stringify(template.toJSON())).not.toMatch(/\d{12}|[a-z]{2}-[a-z]+-\d/);
  expect(stack.environment).toBe("aws://unknown-account/unknown-region");
});

describe("routes", () => {
  test("are those of the contract and a default, all to one function by payload 2.0", () => {
    const keys = propertiesOf("AWS::ApiGatewayV2::Route").map(({ RouteKey }) => RouteKey);
    expect(keys.sort()).toEqual([...ROUTES.map(({ method, path }) => `${method} ${path}`), "$default"].sort());
    expect(onlyPropertiesOf("AWS::ApiGatewayV2::Integration")).toMatchObject({
      IntegrationType: "AWS_PROXY",
      PayloadFormatVersion: "2.0",
    });
    const targets = propertiesOf("AWS::ApiGatewayV2::Route").map(({ Target }) => JSON.stringify(Target));
    expect(new Set(targets).size).toBe(1);
  });

  test("want IAM, every one", () => {
    const types = propertiesOf("AWS::ApiGatewayV2::Route").map(({ AuthorizationType }) => AuthorizationType);
    expect(new Set(types)).toEqual(new Set(["AWS_IAM"]));
    expect(Annotations.fromStack(stack).findWarning("*", Match.anyValue())).toEqual([]);
  });

  test("are open with auth none, and the synth warns of it", () => {
    const open = makeStack({ auth: "none" });
    const types = propertiesOf("AWS::ApiGatewayV2::Route", Template.fromStack(open)).map(
      ({ AuthorizationType }) => AuthorizationType,
    );
    expect(new Set(types)).toEqual(new Set(["NONE"]));
    const warnings = Annotations.fromStack(open).findWarning("*", Match.stringLikeRegexp("skillbroker:open-api"));
    expect(warnings).toHaveLength(1);
  });

  test("may call the function, and only this API's may", () => {
    const permissions = propertiesOf("AWS::Lambda::Permission");
    expect(permissions.length).toBeGreaterThan(0);
    const [api] = Object.keys(template.findResources("AWS::ApiGatewayV2::Api"));
    for (const { Principal, SourceArn, Action } of permissions) {
      expect({ Principal, Action }).toEqual({
        Principal: "apigateway.amazonaws.com",
        Action: "lambda:InvokeFunction",
      });
      expect(JSON.stringify(SourceArn)).toContain(`{"Ref":"${api}"}`);
    }
  });

  test("are logged without the caller's address or name", () => {
    const { AccessLogSettings, StageName } = onlyPropertiesOf("AWS::ApiGatewayV2::Stage");
    expect(StageName).toBe("$default");
    const format: string = AccessLogSettings.Format;
    expect(JSON.parse(format)).toMatchObject({ request_id: "$context.requestId", status: "$context.status" });
    expect(format).not.toMatch(/identity|sourceIp|userAgent|path\b/);
  });
});

describe("the function", () => {
  const lambda = onlyPropertiesOf("AWS::Lambda::Function");

  test("runs on Node 24, on ARM, with a whole processor", () => {
    expect(lambda).toMatchObject({
      Runtime: "nodejs24.x",
      Architectures: ["arm64"],
      MemorySize: 1769,
      Handler: "index.handler",
    });
  });

  test("has the environment that its code reads, no more and no less", () => {
    const { Variables } = lambda.Environment;
    expect(Object.keys(Variables).sort()).toEqual(Object.keys(HttpEnv.shape).sort());
    expect(parseEnv(HttpEnv, { ...Variables, BUCKET_NAME: "a-bucket" })).toEqual({
      BUCKET_NAME: "a-bucket",
      APPROVED_TOOLS: ["local", "data_table@1"],
      LIMITS: {},
      AUTH: "iam",
      ARTIFACT_DAYS: 7,
    });
    const [bucket] = Object.keys(template.findResources("AWS::S3::Bucket"));
    expect(Variables.BUCKET_NAME).toEqual({ Ref: bucket });
  });

  test("is told every setting that the operator chose", () => {
    const chosen = { tools: ["create_pdf@1"], limits: { max_calls: 3 }, auth: "none", artifactDays: 30 };
    const told = parseEnv(HttpEnv, { BUCKET_NAME: "a-bucket", ...toEnvironment(OperatorSettings.parse(chosen)) });
    expect(told).toMatchObject({
      APPROVED_TOOLS: ["create_pdf@1"],
      LIMITS: { max_calls: 3 },
      AUTH: "none",
      ARTIFACT_DAYS: 30,
    });
  });

  test("outlives the longest job, ends before the gateway gives up, and leaves a cold start its time", () => {
    const { TimeoutInMillis } = onlyPropertiesOf("AWS::ApiGatewayV2::Integration");
    const order = [
      DEFAULT_LIMITS.call_timeout_ms,
      DEFAULT_LIMITS.job_timeout_ms,
      MAX_JOB_TIMEOUT_MS,
      lambda.Timeout * 1000,
      TimeoutInMillis,
      30_000,
    ];
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(new Set(order).size).toBe(order.length);
    expect(TimeoutInMillis - lambda.Timeout * 1000).toBeGreaterThanOrEqual(2_000);
    expect(lambda.Timeout * 1000 - MAX_JOB_TIMEOUT_MS).toBeGreaterThanOrEqual(3_000);
  });
});

test("every log is kept for a month", () => {
  const groups = propertiesOf("AWS::Logs::LogGroup");
  expect(groups.map(({ RetentionInDays }) => RetentionInDays)).toEqual([30, 30]);
  const [logging] = propertiesOf("AWS::Lambda::Function").map(({ LoggingConfig }) => LoggingConfig);
  expect(Object.keys(template.findResources("AWS::Logs::LogGroup"))).toContain(logging.LogGroup.Ref);
});

test("refused repositories and errors are counted from the function's log, and none of them as zero", () => {
  const filters = propertiesOf("AWS::Logs::MetricFilter");
  const [logging] = propertiesOf("AWS::Lambda::Function").map(({ LoggingConfig }) => LoggingConfig);
  expect(filters.map(({ FilterPattern }) => FilterPattern).sort()).toEqual([
    '{ $.code = "REPOSITORY_REFUSED" }',
    '{ $.level = "error" }',
  ]);
  for (const { LogGroupName, MetricTransformations } of filters) {
    expect(LogGroupName).toEqual(logging.LogGroup);
    expect(MetricTransformations).toEqual([expect.objectContaining({ MetricValue: "1", DefaultValue: 0 })]);
  }
});

describe("the role", () => {
  type Statement = {
    readonly Effect: string;
    readonly Action: string | readonly string[];
    readonly Resource: unknown;
    readonly Condition?: unknown;
  };
  const [bucketId] = Object.keys(template.findResources("AWS::S3::Bucket"));
  const roles = propertiesOf("AWS::IAM::Role");
  const documents = [...roles.flatMap(({ Policies = [] }) => Policies), ...propertiesOf("AWS::IAM::Policy")].map(
    ({ PolicyDocument }) => PolicyDocument,
  );
  const statements: readonly Statement[] = documents.flatMap(({ Statement }) => Statement);
  /** `GetAtt` and `Join` as one text, with the bucket's name for its ARN. */
  const textOf = (resource: unknown): string =>
    JSON.stringify(resource)
      .replaceAll(`{"Fn::GetAtt":["${bucketId}","Arn"]}`, '"bucket"')
      .replace(/^\{"Fn::Join":\["",\[(.*)\]\]\}$/, (_, parts) => JSON.parse(`[${parts}]`).join(""))
      .replaceAll('"', "");
  const granted = statements.flatMap(({ Action, Resource }) =>
    [Action].flat().flatMap((action) => [Resource].flat().map((resource) => `${action} ${textOf(resource)}`)),
  );

  test("is the function's alone and borrows no managed policy", () => {
    expect(roles).toHaveLength(1);
    expect(roles[0].ManagedPolicyArns).toBeUndefined();
    expect(roles[0].AssumeRolePolicyDocument.Statement).toMatchObject([
      { Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" } },
    ]);
  });

  test("may do to the bucket what the job store does, and nothing else", () => {
    expect(granted.filter((grant) => grant.startsWith("s3:")).sort()).toEqual([
      "s3:DeleteObject bucket/artifacts/*",
      "s3:GetObject bucket/artifacts/*",
      "s3:GetObject bucket/jobs/*",
      "s3:ListBucket bucket",
      "s3:PutObject bucket/artifacts/*",
      "s3:PutObject bucket/jobs/*",
    ]);
  });

  test("may otherwise only write its own log", () => {
    const others = granted.filter((grant) => !grant.startsWith("s3:"));
    expect(others.map((grant) => grant.split(" ")[0]).sort()).toEqual(["logs:CreateLogStream", "logs:PutLogEvents"]);
    const log = propertiesOf("AWS::Lambda::Function")[0].LoggingConfig.LogGroup.Ref;
    for (const grant of others) expect(grant).toContain(log);
  });

  test("may list by its two prefixes, and is told 404 instead of 403 for one missing object", () => {
    const listing = statements.filter(({ Action }) => [Action].flat().includes("s3:ListBucket"));
    expect(listing.map(({ Condition }) => Condition)).toEqual([
      { StringLikeIfExists: { "s3:prefix": ["artifacts/*", "jobs/*"] } },
    ]);
  });

  test("holds no wildcard action and no wildcard resource", () => {
    expect(statements.map(({ Effect }) => Effect)).not.toContain("Deny");
    for (const { Action } of statements) for (const action of [Action].flat()) expect(action).not.toContain("*");
    for (const { Resource } of statements) expect([Resource].flat()).not.toContain("*");
  });
});

describe("the bucket", () => {
  const bucket = Object.values(template.findResources("AWS::S3::Bucket"))[0];

  test("is closed to the public, encrypted, and owned by its account alone", () => {
    expect(onlyPropertiesOf("AWS::S3::Bucket")).toMatchObject({
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
    expect(Object.keys(bucket?.Properties)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/WebsiteConfiguration|CorsConfiguration|AccessControl/)]),
    );
  });

  test("has a policy that only denies: what does not come over TLS 1.2", () => {
    const { PolicyDocument } = onlyPropertiesOf("AWS::S3::BucketPolicy");
    const told = PolicyDocument.Statement.map(({ Effect, Action, Condition }: Record<string, unknown>) => ({
      Effect,
      Action,
      Condition,
    }));
    expect(told).toEqual([
      { Effect: "Deny", Action: "s3:*", Condition: { Bool: { "aws:SecureTransport": "false" } } },
      { Effect: "Deny", Action: "s3:*", Condition: { NumericLessThan: { "s3:TlsVersion": 1.2 } } },
    ]);
  });

  test.each([
    ["seven days, when nothing is chosen", {}, 7],
    ["as many days as were chosen", { artifactDays: 30 }, 30],
  ])("keeps files %s, and records for a month more", (_, settings, days) => {
    const { LifecycleConfiguration } = onlyPropertiesOf("AWS::S3::Bucket", Template.fromStack(makeStack(settings)));
    expect(LifecycleConfiguration.Rules.map(({ Id: _, ...rule }: { Id: string }) => rule)).toEqual([
      { Prefix: "artifacts/", ExpirationInDays: days, Status: "Enabled" },
      { Prefix: "jobs/", ExpirationInDays: days + 30, Status: "Enabled" },
      { AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 }, Status: "Enabled" },
    ]);
  });

  test("stays when the stack goes", () => {
    expect(bucket).toMatchObject({ DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain" });
  });
});

test("tells the address of the API and the name of the bucket", () => {
  expect(Object.keys(template.findOutputs("*")).sort()).toEqual(["ApiUrl", "BucketName"]);
});
