import type { SQSClientConfig } from "@aws-sdk/client-sqs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createSqsEventQueue, toSqsTimeouts } from "../../../functions/aws/sqs-event-queue.ts";
import { AWS_TIMEOUTS } from "../../../functions/aws/timeouts.ts";
import { type AwsJsonServer, startAwsJsonServer, toAwsError } from "../../kit/aws-json-server.ts";
import { impatience } from "../../kit/s3-client.ts";
import { createTestSqsClient } from "../../kit/sqs-client.ts";
import "../../kit/to-fail.ts";

const QUEUE_URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/refresh.fifo";
const ATTRIBUTES = {
  SentTimestamp: "1801440000750",
  ApproximateFirstReceiveTimestamp: "1801440001800",
  ApproximateReceiveCount: "2",
};
const MESSAGE = { MessageId: "m1", ReceiptHandle: "r1", Body: "one", Attributes: ATTRIBUTES };

let server: AwsJsonServer;
beforeEach(async () => {
  server = await startAwsJsonServer();
});
afterEach(() => server.close());

function open(overrides: SQSClientConfig = {}, waitSeconds?: number) {
  // The md5 of what a test makes up is not right, and not what is shown here.
  const client = createTestSqsClient(server.url, { md5: false, ...overrides });
  return createSqsEventQueue({ client, queueUrl: QUEUE_URL, ...(waitSeconds === undefined ? {} : { waitSeconds }) });
}

describe("sending", () => {
  test("names group and deduplication id to a queue that keeps order, and nothing to another", async () => {
    await open().send({ body: "one", group: "github", deduplicationId: "github:7" });
    await open().send({ body: "two" });
    expect(server.requests).toEqual([
      {
        action: "SendMessage",
        body: {
          QueueUrl: QUEUE_URL,
          MessageBody: "one",
          MessageGroupId: "github",
          MessageDeduplicationId: "github:7",
        },
      },
      { action: "SendMessage", body: { QueueUrl: QUEUE_URL, MessageBody: "two" } },
    ]);
  });

  test("is done again when the queue fails, and then fails", async () => {
    server.say(toAwsError("InternalError", "broken", 500), { body: { MessageId: "m1" } });
    await open().send({ body: "one" });
    expect(server.requests).toHaveLength(2);
    server.say(toAwsError("InternalError", "broken", 500));
    await expect(open().send({ body: "one" })).rejects.toThrow();
    expect(server.requests).toHaveLength(5);
  });

  test.each(["AccessDeniedException", "QueueDoesNotExist", "InvalidMessageContents"])(
    "passes the refusal of the queue on (%s)",
    async (name) => {
      server.say(toAwsError(name, "no"));
      await expect(open().send({ body: "one" })).rejects.toThrow(expect.objectContaining({ name }));
    },
  );
});

describe("receiving", () => {
  test("asks for every time and count, for ten at the most, and does not wait", async () => {
    expect(await open().receive({ max: 500 })).toEqual([]);
    expect(server.requests[0]).toMatchObject({
      action: "ReceiveMessage",
      body: { MaxNumberOfMessages: 10, WaitTimeSeconds: 0 },
    });
    await open({}, 20).receive({ max: 3 });
    expect(server.requests[1]).toMatchObject({ body: { MaxNumberOfMessages: 3, WaitTimeSeconds: 20 } });
  });

  test("tells the queue's own times", async () => {
    server.say({ body: { Messages: [MESSAGE] } });
    expect(await open().receive({ max: 1 })).toEqual([
      { id: "m1", receipt: "r1", body: "one", sentAt: 1801440000750, firstReceivedAt: 1801440001800, receiveCount: 2 },
    ]);
  });

  test.each([
    ["no id", { ...MESSAGE, MessageId: undefined }],
    ["no receipt", { ...MESSAGE, ReceiptHandle: undefined }],
    ["no body", { ...MESSAGE, Body: undefined }],
    ["no attributes", { ...MESSAGE, Attributes: undefined }],
    ["a time that is none", { ...MESSAGE, Attributes: { ...ATTRIBUTES, SentTimestamp: "soon" } }],
    ["a count that is none", { ...MESSAGE, Attributes: { ...ATTRIBUTES, ApproximateReceiveCount: "" } }],
  ])("takes a message with %s for a defect", async (_, message) => {
    server.say({ body: { Messages: [message] } });
    await expect(open().receive({ max: 1 })).rejects.toFail("DEFECT");
  });
});

describe("a receipt", () => {
  const EXPIRED = "Value r1 for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.";

  test.each([
    ["ReceiptHandleIsInvalid", "The input receipt handle is invalid."],
    ["MessageNotInflight", "not in flight"],
    ["InvalidParameterValue", EXPIRED],
  ])("is void when the queue says so (%s)", async (name, message) => {
    server.say(toAwsError(name, message));
    expect(await open().remove("r1")).toBe(false);
    expect(await open().hide("r1", 5)).toBe(false);
  });

  test.each([
    ["AccessDeniedException", "no"],
    ["InvalidParameterValue", "Value 50000 for parameter VisibilityTimeout is invalid."],
  ])("is not void because something else is wrong (%s)", async (name, message) => {
    server.say(toAwsError(name, message));
    await expect(open().remove("r1")).rejects.toThrow(expect.objectContaining({ name }));
    await expect(open().hide("r1", 5)).rejects.toThrow(expect.objectContaining({ name }));
  });

  test.each([
    [0, 0],
    [0.2, 1],
    [5, 5],
    [5.001, 6],
  ])("hides for %d s by %i whole ones, so that nobody else begins too soon", async (seconds, whole) => {
    expect(await open().hide("r1", seconds)).toBe(true);
    expect(server.requests).toEqual([
      {
        action: "ChangeMessageVisibility",
        body: { QueueUrl: QUEUE_URL, ReceiptHandle: "r1", VisibilityTimeout: whole },
      },
    ]);
  });
});

describe("a queue that hangs", () => {
  test("is given up after three attempts", async () => {
    server.say("hang");
    const failed = open(impatience(50)).send({ body: "one" });
    const wanted = { name: "TimeoutError", $metadata: expect.objectContaining({ attempts: 3 }) };
    await expect(failed).rejects.toThrow(expect.objectContaining(wanted));
  });

  test("is given up so by the client that the function makes, whatever the environment says", async () => {
    vi.stubEnv("AWS_MAX_ATTEMPTS", "9");
    const client = createTestSqsClient(server.url, { md5: false });
    await createSqsEventQueue({ client, queueUrl: QUEUE_URL }).remove("r1");
    vi.unstubAllEnvs();
    expect(await client.config.maxAttempts()).toBe(3);
    const { requestHandler } = client.config;
    // Every handler of the SDK has it, and the type does not tell.
    expect(Reflect.apply(Reflect.get(requestHandler, "httpHandlerConfigs"), requestHandler, [])).toMatchObject(
      AWS_TIMEOUTS,
    );
  });

  test("is not mistaken for one that waits for a message", () => {
    const { requestTimeout, socketTimeout } = AWS_TIMEOUTS;
    expect(toSqsTimeouts()).toEqual(AWS_TIMEOUTS);
    expect(toSqsTimeouts(20)).toMatchObject({
      requestTimeout: requestTimeout + 20_000,
      socketTimeout: socketTimeout + 20_000,
    });
  });
});
