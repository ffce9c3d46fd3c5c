import type { SQSEvent } from "aws-lambda";
import { describe, expect, test } from "vitest";
import { createQueueHandler } from "../../../functions/aws/sqs-events.ts";
import { Fault } from "../../../functions/contract/fault.ts";
import type { FailedMessages, Log, ReceivedMessage } from "../../../functions/contract/ports.ts";
import { toLambdaContext } from "../../../local/lambda-context.ts";
import type { Logged } from "../../kit/http-events.ts";
import "../../kit/to-fail.ts";

const CONTEXT = toLambdaContext({ requestId: "request-1", functionName: "notify", remainingMs: () => 1000 });
const ATTRIBUTES = {
  ApproximateReceiveCount: "3",
  SentTimestamp: "1801440000750",
  SenderId: "AIDASSYFHUBOBT7F4XT75",
  ApproximateFirstReceiveTimestamp: "1801440001800",
};

/** As AWS documents a record. */
function toRecord(messageId: string, more: Readonly<Record<string, unknown>> = {}) {
  return {
    messageId,
    receiptHandle: `receipt of ${messageId}`,
    body: `body of ${messageId}`,
    attributes: ATTRIBUTES,
    messageAttributes: {},
    md5OfBody: "e4e68fb7bd0e697a0ae8f1bb342846b3",
    eventSource: "aws:sqs",
    eventSourceARN: "arn:aws:sqs:us-east-2:123456789012:my-queue",
    awsRegion: "us-east-2",
    ...more,
  };
}

function inGroup(MessageGroupId: string) {
  return { attributes: { ...ATTRIBUTES, MessageGroupId, MessageDeduplicationId: "d" } };
}

/** What no compiler would let through, as it may come all the same. */
function toEvent(Records: unknown): SQSEvent {
  return JSON.parse(JSON.stringify({ Records }));
}

type Run = {
  /** Ids that go back to the queue. */
  readonly failed: readonly string[];
  readonly processed: readonly (readonly ReceivedMessage[])[];
  readonly logged: readonly Logged[];
};

async function run(
  records: readonly unknown[],
  process: (messages: readonly ReceivedMessage[]) => FailedMessages = () => new Map(),
): Promise<Run> {
  const processed: (readonly ReceivedMessage[])[] = [];
  const logged: Logged[] = [];
  const log: Log = (level, message, fields = {}) => logged.push({ level, message, fields: { ...fields } });
  const handler = createQueueHandler({
    log,
    process: async (messages) => {
      processed.push(messages);
      return process(messages);
    },
  });
  const { batchItemFailures, ...rest } = await handler(toEvent(records), CONTEXT);
  expect(rest).toEqual({});
  return { failed: batchItemFailures.map(({ itemIdentifier }) => itemIdentifier), processed, logged };
}

function failing(...ids: readonly string[]): () => FailedMessages {
  return () => new Map(ids.map((id) => [id, new Fault("SERVER_UNAVAILABLE", `no server for ${id}`)]));
}

describe("a batch", () => {
  test("comes to the process as messages, with every time and count as a number", async () => {
    const { processed, failed } = await run([toRecord("m1", inGroup("github")), toRecord("m2")]);
    const common = { sentAt: 1801440000750, firstReceivedAt: 1801440001800, receiveCount: 3 };
    const ordered = { group: "github", deduplicationId: "d" };
    expect(processed).toEqual([
      [
        { id: "m1", receipt: "receipt of m1", body: "body of m1", ...ordered, ...common },
        { id: "m2", receipt: "receipt of m2", body: "body of m2", ...common },
      ],
    ]);
    expect(failed).toEqual([]);
  });

  test("gives exactly the failed ids back", async () => {
    const records = ["m1", "m2", "m3"].map((id) => toRecord(id));
    expect((await run(records, failing("m2"))).failed).toEqual(["m2"]);
    expect((await run(records, failing("m3", "m1"))).failed).toEqual(["m1", "m3"]);
    expect((await run(records, failing("m1", "m2", "m3"))).failed).toEqual(["m1", "m2", "m3"]);
  });

  test("never gives an id back that is not in it, which would bring all of it back", async () => {
    const { failed } = await run([toRecord("m1")], failing("", "other", "m1 "));
    expect(failed).toEqual([]);
  });

  test("gives an id that is in it twice back once", async () => {
    expect((await run([toRecord("m1"), toRecord("m1")], failing("m1"))).failed).toEqual(["m1"]);
  });

  test("that is empty is done, and nobody is bothered", async () => {
    expect(await run([])).toEqual({ failed: [], processed: [], logged: [] });
  });

  test("fails whole when the process breaks, and the log has the cause", async () => {
    const broken = new TypeError("broken");
    const { failed, logged } = await run([toRecord("m1"), toRecord("m2")], () => {
      throw broken;
    });
    expect(failed).toEqual(["m1", "m2"]);
    expect(logged).toContainEqual({ level: "error", message: "batch of a queue failed", fields: { error: broken } });
  });
});

describe("a record that is not as AWS describes it", () => {
  const { body: _, ...bodiless } = toRecord("bad");

  test.each([
    ["no body", bodiless],
    ["a body of null", toRecord("bad", { body: null })],
    ["a body that is no text", toRecord("bad", { body: { server: "github" } })],
    ["no attributes", toRecord("bad", { attributes: undefined })],
    ["attributes of null", toRecord("bad", { attributes: null })],
    ["a time that is none", toRecord("bad", { attributes: { ...ATTRIBUTES, SentTimestamp: "soon" } })],
    ["a time that is a number", toRecord("bad", { attributes: { ...ATTRIBUTES, SentTimestamp: 1801440000750 } })],
    ["no count", toRecord("bad", { attributes: { ...ATTRIBUTES, ApproximateReceiveCount: undefined } })],
    ["no receipt", toRecord("bad", { receiptHandle: undefined })],
  ])("fails alone and is not processed: %s", async (_title, record) => {
    const { failed, processed, logged } = await run([toRecord("m1"), record, toRecord("m2")]);
    expect(failed).toEqual(["bad"]);
    expect(processed.flat().map(({ id }) => id)).toEqual(["m1", "m2"]);
    expect(logged).toMatchObject([{ level: "error", fields: { message_id: "bad", code: "DEFECT" } }]);
  });

  test.each([null, 7, "m1", [], {}, { messageId: "" }, { messageId: 7 }])(
    "is passed over, loudly, when it has no id: %j",
    async (record) => {
      const { failed, processed, logged } = await run([toRecord("m1"), record]);
      expect(failed).toEqual([]);
      expect(processed.flat().map(({ id }) => id)).toEqual(["m1"]);
      expect(logged).toMatchObject([{ level: "error", fields: { record: expect.any(String) } }]);
    },
  );

  test.each([undefined, null, 7, "event", [], {}, { Records: null }, { Records: {} }])(
    "must not pass for a batch that is done when it is no event of a queue at all: %j",
    async (event) => {
      const handler = createQueueHandler({ log: () => undefined, process: async () => new Map() });
      await expect(Reflect.apply(handler, undefined, [event, CONTEXT])).rejects.toFail("DEFECT");
    },
  );

  test("does no harm when the context is missing, too", async () => {
    const logged: unknown[] = [];
    const handler = createQueueHandler({ log: (...line) => logged.push(line), process: async () => failing("m1")() });
    const answer = await Reflect.apply(handler, undefined, [toEvent([toRecord("m1")])]);
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: "m1" }] });
    expect(logged).toHaveLength(1);
  });
});

describe("a group", () => {
  const records: readonly unknown[] = [
    toRecord("a1", inGroup("a")),
    toRecord("b1", inGroup("b")),
    toRecord("a2", inGroup("a")),
    toRecord("b2", inGroup("b")),
    toRecord("a3", inGroup("a")),
  ];

  test("fails from its first failure on, and holds up no other", async () => {
    expect((await run(records, failing("a2"))).failed).toEqual(["a2", "a3"]);
    expect((await run(records, failing("a1"))).failed).toEqual(["a1", "a2", "a3"]);
    expect((await run(records, failing("b2"))).failed).toEqual(["b2"]);
  });

  test("is not processed after a record of it that cannot be read", async () => {
    const { failed, processed } = await run(records.with(0, { ...toRecord("a1", inGroup("a")), body: null }));
    expect(failed).toEqual(["a1", "a2", "a3"]);
    expect(processed.flat().map(({ id }) => id)).toEqual(["b1", "b2"]);
  });

  test("says of what it held up why it failed", async () => {
    const { logged } = await run(records, failing("a2"));
    expect(logged.map(({ fields }) => [fields.message_id, fields.code, fields.reason])).toEqual([
      ["a2", "SERVER_UNAVAILABLE", "no server for a2"],
      ["a3", "SERVER_UNAVAILABLE", "an earlier message of its group failed, and order is kept"],
    ]);
  });

  test("is none for messages without one: they fail each by itself", async () => {
    expect((await run([toRecord("m1"), toRecord("m2")], failing("m1"))).failed).toEqual(["m1"]);
  });
});

describe("the log", () => {
  test("has for each failed message its id, its count, the reason and the beginning of its body", async () => {
    const body = `first line\nsecond \u001b[31m\u202e ${"x".repeat(300_000)}`;
    const { logged } = await run([toRecord("m1", { body }), toRecord("m2")], failing("m1"));
    const [line, ...others] = logged;
    expect(others).toEqual([]);
    expect(line).toMatchObject({
      level: "warn",
      message: "message of a queue failed",
      fields: { request_id: "request-1", message_id: "m1", receive_count: 3, reason: "no server for m1" },
    });
    const shown = String(line?.fields.body);
    expect(shown).toMatch(/^"first line\\nsecond \\u001b\[31m\\u\{202e\} x+"\.\.\.$/);
    expect(shown.length).toBeLessThan(200);
  });

  test.each([
    ["DEFECT", "error"],
    ["SERVER_UNAVAILABLE", "warn"],
    ["REQUEST_INVALID", "warn"],
  ] as const)("is as loud as the fault is ours: %s is %s", async (code, level) => {
    const { logged } = await run([toRecord("m1")], () => new Map([["m1", new Fault(code, "it failed")]]));
    expect(logged).toMatchObject([{ level }]);
  });

  test("has the cause of a defect with it", async () => {
    const fault = new Fault("DEFECT", "the notifications of github failed", { cause: new Error("the store is full") });
    const { logged } = await run([toRecord("m1")], () => new Map([["m1", fault]]));
    expect(logged).toMatchObject([{ fields: { error: fault } }]);
  });
});
