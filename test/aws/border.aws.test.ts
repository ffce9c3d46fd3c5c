import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { SendMessageCommand } from "@aws-sdk/client-sqs";
import { GetParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createTestS3Client } from "../kit/s3-client.ts";
import { createTestQueue, createTestSqsClient } from "../kit/sqs-client.ts";
import { type Border, startBorder } from "./kit/border.ts";
import { CREDENTIALS, type Storage, startQueueing, startStorage } from "./kit/emulators.ts";
import { REGION } from "./kit/names.ts";
import type { Access } from "./kit/permissions.ts";

/** What stands between a function and AWS in the harness: it is the witness of what a function calls. */

const BUCKET = "border";
const CLIENT = { credentials: CREDENTIALS, region: REGION, maxAttempts: 1 } as const;

let storage: Storage;
let queueing: Awaited<ReturnType<typeof startQueueing>>;
let border: Border;
let permits: (access: Access) => boolean;

beforeAll(async () => {
  [storage, queueing] = await Promise.all([startStorage(BUCKET), startQueueing()]);
  const services = { s3: storage.url, sqs: queueing.url };
  border = await startBorder({
    services,
    permits: (access) => permits(access),
    region: REGION,
    account: "000000000000",
  });
});
beforeEach(() => {
  permits = () => true;
});
afterAll(() => Promise.all([border.close(), storage.close(), queueing.close()]));

const s3 = () => createTestS3Client(border.url, CLIENT);
const put = (Key: string) => s3().send(new PutObjectCommand({ Bucket: BUCKET, Key, Body: "x" }));
const get = (Key: string) => s3().send(new GetObjectCommand({ Bucket: BUCKET, Key }));
const lastCall = () => border.calls.at(-1);

test("what is allowed is done, and told by its action and its resource", async () => {
  await put("a/b ü");
  expect(lastCall()).toEqual({ action: "s3:PutObject", resource: `arn:aws:s3:::${BUCKET}/a/b ü`, allowed: true });
  const { Body } = await get("a/b ü");
  expect(await Body?.transformToString()).toBe("x");
});

test("what is not allowed is refused as S3 refuses it, told all the same, and not done", async () => {
  permits = ({ action }) => action !== "s3:PutObject";
  await expect(put("refused")).rejects.toMatchObject({ name: "AccessDenied" });
  expect(lastCall()).toMatchObject({ action: "s3:PutObject", allowed: false });
  await expect(get("refused")).rejects.toMatchObject({ name: "NoSuchKey" });
});

test("an object that is not there is forbidden to who may not list the bucket", async () => {
  permits = ({ action }) => action !== "s3:ListBucket";
  await expect(get("nothing")).rejects.toMatchObject({ name: "AccessDenied" });
});

test("a queue is told by its ARN, and refused as SQS refuses", async () => {
  const settings = { fifo: false, delaySeconds: 0, visibilitySeconds: 30, maxReceives: 5 };
  const { url } = await createTestQueue(createTestSqsClient(queueing.url), settings);
  const QueueUrl = border.url + new URL(url).pathname;
  const client = createTestSqsClient(border.url, CLIENT);
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: "m" }));
  const resource = `arn:aws:sqs:${REGION}:000000000000:${url.split("/").at(-1)}`;
  expect(lastCall()).toEqual({ action: "sqs:SendMessage", resource, allowed: true });
  permits = () => false;
  await expect(client.send(new SendMessageCommand({ QueueUrl, MessageBody: "m" }))).rejects.toMatchObject({
    name: "AccessDeniedException",
  });
});

test("any other service is told and refused", async () => {
  const client = new SSMClient({ ...CLIENT, endpoint: border.url });
  await expect(client.send(new GetParameterCommand({ Name: "p" }))).rejects.toMatchObject({
    name: "AccessDeniedException",
  });
  expect(lastCall()).toMatchObject({ action: "ssm:GetParameter" });
});

test("what is held waits until it is released, and is done then", async () => {
  const hold = border.hold(({ action }) => action === "s3:PutObject");
  const putting = put("held");
  expect(await hold.reached).toMatchObject({ resource: `arn:aws:s3:::${BUCKET}/held` });
  await expect(get("held")).rejects.toMatchObject({ name: "NoSuchKey" });
  hold.release();
  await putting;
  expect((await get("held")).ContentLength).toBe(1);
});
