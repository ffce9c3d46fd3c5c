import { describe, expect, test } from "vitest";
import type { ReceivedMessage } from "../../functions/contract/ports.ts";
import { readBatchResponse, toSqsEvent } from "../../local/queue-event.ts";

const MESSAGE: ReceivedMessage = {
  id: "m1",
  receipt: "r1",
  body: "Test message.",
  sentAt: 1545082649183,
  firstReceivedAt: 1545082649185,
  receiveCount: 1,
};
const MESSAGES = [MESSAGE, { ...MESSAGE, id: "m2" }];

describe("the event", () => {
  test("has every field that AWS documents, in its types", () => {
    expect(toSqsEvent([MESSAGE], "notifications")).toEqual({
      Records: [
        {
          messageId: "m1",
          receiptHandle: "r1",
          body: "Test message.",
          attributes: {
            ApproximateReceiveCount: "1",
            SentTimestamp: "1545082649183",
            SenderId: "local",
            ApproximateFirstReceiveTimestamp: "1545082649185",
          },
          messageAttributes: {},
          // From AWS's own example of an event with this body.
          md5OfBody: "e4e68fb7bd0e697a0ae8f1bb342846b3",
          eventSource: "aws:sqs",
          eventSourceARN: "arn:aws:sqs:local:000000000000:notifications",
          awsRegion: "local",
        },
      ],
    });
  });

  test("names group and deduplication id where there are such", () => {
    const [record] = toSqsEvent([{ ...MESSAGE, group: "github", deduplicationId: "github:7" }], "refresh.fifo").Records;
    expect(record?.attributes).toMatchObject({ MessageGroupId: "github", MessageDeduplicationId: "github:7" });
    expect(record?.eventSourceARN).toMatch(/:refresh\.fifo$/);
  });

  test("has the md5 of the body's bytes", () => {
    expect(toSqsEvent([{ ...MESSAGE, body: "é" }], "q").Records[0]?.md5OfBody).toBe("66ddcd97cfdeabb2f6fb8a999b4bc76f");
  });
});

describe("the answer", () => {
  test.each([null, undefined, {}, { batchItemFailures: null }, { batchItemFailures: [] }, "done"])(
    "that names nothing says that all is done: %j",
    (response) => {
      expect([...readBatchResponse(response, MESSAGES)]).toEqual([]);
    },
  );

  test("brings the named messages back", () => {
    const response = { batchItemFailures: [{ itemIdentifier: "m2" }] };
    expect([...readBatchResponse(response, MESSAGES)]).toEqual(["m2"]);
  });

  test.each([
    { batchItemFailures: [{ itemIdentifier: "" }] },
    { batchItemFailures: [{ itemIdentifier: null }] },
    { batchItemFailures: [{ id: "m2" }] },
    { batchItemFailures: [{ itemIdentifier: "m2" }, { itemIdentifier: "other" }] },
    { batchItemFailures: [null] },
    { batchItemFailures: "m2" },
    { batchItemFailures: { itemIdentifier: "m2" } },
  ])("that names what is not in the batch brings all of it back: %j", (response) => {
    expect([...readBatchResponse(response, MESSAGES)]).toEqual(["m1", "m2"]);
  });
});
