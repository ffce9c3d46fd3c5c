import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GetObjectCommand, HeadBucketCommand, ListBucketsCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { GetQueueAttributesCommand, ListQueuesCommand } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FUNCTION_NAMES } from "../../cdk/entry-points.ts";
import { readTemplate } from "../cdk/kit/run-app.ts";
import { findMoto, startMoto } from "../kit/moto.ts";
import { createTestS3Client } from "../kit/s3-client.ts";
import { createTestSqsClient } from "../kit/sqs-client.ts";
import { type Cdk, cdkAgainst, describeMoto, type MotoAws } from "./kit/moto-cdk.ts";

/** `cdk bootstrap`, `deploy`, an update and `destroy`, as an operator runs them, against moto's CloudFormation. */

const moto = findMoto();
const PATIENCE = 180_000;

describe.skipIf(moto === undefined)("a deployment (moto)", () => {
  const home = mkdtempSync(join(tmpdir(), "skillbroker-deploy-"));
  const [first, second] = [join(home, "first"), join(home, "second")];
  let server: Awaited<ReturnType<typeof startMoto>>;
  let cdk: Cdk;
  let aws: MotoAws;

  const deploy = (directory: string) =>
    cdk.run("deploy", "--app", directory, "--require-approval", "never", "--method=direct");
  const environmentOf = async (part: string) => {
    const found = (await aws.functions()).find(({ FunctionName }) => FunctionName.includes(part));
    return found?.Environment.Variables ?? {};
  };

  beforeAll(async () => {
    if (moto === undefined) return;
    server = await startMoto(moto);
    cdk = cdkAgainst(server.url, home);
    aws = describeMoto(server.url);
    await cdk.synth({ tools: ["local"], artifactDays: 7 }, first);
    await cdk.synth({ tools: ["local", "data_table@1"], artifactDays: 30 }, second);
    await cdk.run("bootstrap", "aws://123456789012/eu-central-1", "--app", first);
    await deploy(first);
  }, PATIENCE);

  afterAll(async () => {
    await server?.close();
    rmSync(home, { recursive: true, force: true });
  });

  test("is bootstrapped and complete", async () => {
    expect(await aws.stackStatus("CDKToolkit")).toMatch(/^(CREATE|UPDATE)_COMPLETE$/);
    expect(await aws.stackStatus("SkillBroker")).toBe("CREATE_COMPLETE");
  });

  test("has every function, with the time and the environment that the template says", async () => {
    const resources = Object.entries<Resource>(readTemplate(first).Resources);
    const wanted = resources.filter(([, { Type }]) => Type === "AWS::Lambda::Function");
    const made = await aws.functions();
    expect(made).toHaveLength(FUNCTION_NAMES.length);
    for (const [id, { Properties }] of wanted) {
      const found = made.find(({ FunctionName }) => FunctionName.includes(id));
      const { Timeout, Environment } = Properties;
      expect([id, found?.Timeout]).toEqual([id, Timeout]);
      expect(Object.keys(found?.Environment.Variables ?? {}).sort()).toEqual(Object.keys(Environment.Variables).sort());
      for (const [name, value] of Object.entries(Environment.Variables)) {
        if (typeof value === "string") expect([name, found?.Environment.Variables[name]]).toEqual([name, value]);
      }
    }
    for (const { Runtime, CodeSha256 } of made)
      expect([Runtime, CodeSha256]).toEqual(["nodejs24.x", expect.any(String)]);
    const { BUCKET_NAME = "", JOBS_QUEUE_URL, NOTIFICATIONS_QUEUE_URL } = await environmentOf("HttpFunction");
    await createTestS3Client(server.url).send(new HeadBucketCommand({ Bucket: BUCKET_NAME }));
    const urls = (await createTestSqsClient(server.url).send(new ListQueuesCommand())).QueueUrls ?? [];
    const names = urls.map((url) => url.split("/").at(-1));
    for (const url of [JOBS_QUEUE_URL, NOTIFICATIONS_QUEUE_URL]) expect(names).toContain(url?.split("/").at(-1));
  });

  test("has its queues with their delays, their dead letters, and a mapping for each that a function reads", async () => {
    const client = createTestSqsClient(server.url);
    const urls = (await client.send(new ListQueuesCommand())).QueueUrls ?? [];
    const described = await Promise.all(
      urls.map(async (QueueUrl) => {
        const { Attributes = {} } = await client.send(
          new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }),
        );
        return Attributes;
      }),
    );
    expect(described).toHaveLength(6);
    expect(described.filter(({ RedrivePolicy }) => RedrivePolicy !== undefined)).toHaveLength(3);
    const [refreshes] = described.filter(({ FifoQueue, RedrivePolicy }) => FifoQueue === "true" && RedrivePolicy);
    expect(refreshes).toMatchObject({ DelaySeconds: "1", ContentBasedDeduplication: "false" });
    const mapped = (await aws.mappings()).map(({ EventSourceArn }) => EventSourceArn);
    const read = described.filter(({ QueueArn = "" }) => mapped.includes(QueueArn)).map(({ QueueArn }) => QueueArn);
    expect(read.toSorted()).toEqual(mapped.toSorted());
    expect(mapped).toHaveLength(4);
  });

  test(
    "is updated to what the operator changed, in place, and is then taken away without anybody's files",
    async () => {
      const s3 = createTestS3Client(server.url);
      const { BUCKET_NAME: Bucket = "" } = await environmentOf("HttpFunction");
      const codeOf = async (part: string) =>
        (await aws.functions()).find(({ FunctionName }) => FunctionName.includes(part))?.CodeSha256;
      const [http, notify] = [await codeOf("HttpFunction"), await codeOf("NotifyFunction")];
      await s3.send(new PutObjectCommand({ Bucket, Key: "artifacts/a/file.pdf", Body: "a caller's file" }));
      await deploy(second);
      expect(await aws.stackStatus("SkillBroker")).toBe("UPDATE_COMPLETE");
      expect(await environmentOf("HttpFunction")).toMatchObject({
        BUCKET_NAME: Bucket,
        ARTIFACT_DAYS: "30",
      });
      // What is approved is part of the code that reads it, and of no other.
      expect(await codeOf("HttpFunction")).not.toBe(http);
      expect(await codeOf("NotifyFunction")).toBe(notify);
      await cdk.run("destroy", "--app", second, "--force");
      expect(await aws.stackStatus("SkillBroker")).toBeUndefined();
      expect(await aws.functions()).toEqual([]);
      expect((await createTestSqsClient(server.url).send(new ListQueuesCommand())).QueueUrls ?? []).toEqual([]);
      const names = ((await s3.send(new ListBucketsCommand())).Buckets ?? []).map(({ Name }) => Name);
      expect(names).toContain(Bucket);
      const kept = await s3.send(new GetObjectCommand({ Bucket, Key: "artifacts/a/file.pdf" }));
      expect(await kept.Body?.transformToString()).toBe("a caller's file");
    },
    PATIENCE,
  );
});

type Resource = {
  readonly Type: string;
  readonly Properties: {
    readonly Timeout: number;
    readonly Environment: { readonly Variables: Readonly<Record<string, unknown>> };
  };
};
