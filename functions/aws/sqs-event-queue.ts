import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  type Message,
  type MessageSystemAttributeName,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
  type SQSClientConfig,
  SQSServiceException,
} from "@aws-sdk/client-sqs";
import { Fault } from "../contract/fault.ts";
import type { EventConsumer, EventQueue, QueueMessage, ReceivedMessage } from "../contract/ports.ts";
import { AWS_ATTEMPTS, AWS_TIMEOUTS } from "./timeouts.ts";

/**
 * The event queue on SQS. Delay, visibility, most receives, dead letters and order are attributes of the queue. A
 * message whose answer was lost is sent again: a standard queue may then hold it twice, which its consumers must bear
 * anyway, and a FIFO queue drops the second by its deduplication id.
 */

export type SqsEventQueueOptions = {
  readonly client: SQSClient;
  readonly queueUrl: string;
  /** How long `receive` waits for a first message, 0 to 20; 0 when left out. The client's patience must be longer. */
  readonly waitSeconds?: number;
};

/** SQS hands out no more at once. */
const MAX_RECEIVED = 10;

/** `overrides` are for another endpoint, or for the patience that long polling needs. */
export function createSqsClient(overrides: SQSClientConfig = {}): SQSClient {
  return new SQSClient({ requestHandler: toSqsTimeouts(), maxAttempts: AWS_ATTEMPTS, ...overrides });
}

/** A `requestHandler` that can wait for `waitSeconds` of long polling and still notices a queue that hangs. */
export function toSqsTimeouts(waitSeconds = 0) {
  const waitMs = waitSeconds * 1000;
  const { requestTimeout, socketTimeout } = AWS_TIMEOUTS;
  return { ...AWS_TIMEOUTS, requestTimeout: requestTimeout + waitMs, socketTimeout: socketTimeout + waitMs };
}

/**
 * `receive` gives ten messages at the most. SQS need not notice that a receipt is void: `remove` then answers true, and
 * the message comes again all the same.
 */
export function createSqsEventQueue(options: SqsEventQueueOptions): EventQueue & EventConsumer {
  const { client, queueUrl: QueueUrl } = options;
  return {
    send: async (message) => {
      await client.send(new SendMessageCommand({ QueueUrl, MessageBody: message.body, ...toOrdering(message) }));
    },
    receive: ({ max }) => receive(max, options),
    remove: (receipt) => unlessVoid(client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: receipt }))),
    hide: (receipt, seconds) => {
      // SQS takes whole seconds; too short a time would let two work on the message at once.
      const visibility = { ReceiptHandle: receipt, VisibilityTimeout: Math.ceil(seconds) };
      return unlessVoid(client.send(new ChangeMessageVisibilityCommand({ QueueUrl, ...visibility })));
    },
  };
}

function toOrdering({ group, deduplicationId }: QueueMessage) {
  return {
    ...(group === undefined ? {} : { MessageGroupId: group }),
    ...(deduplicationId === undefined ? {} : { MessageDeduplicationId: deduplicationId }),
  };
}

const WANTED_ATTRIBUTES = [
  "SentTimestamp",
  "ApproximateFirstReceiveTimestamp",
  "ApproximateReceiveCount",
  "MessageGroupId",
  "MessageDeduplicationId",
] as const satisfies readonly MessageSystemAttributeName[];

async function receive(
  max: number,
  { client, queueUrl, waitSeconds = 0 }: SqsEventQueueOptions,
): Promise<readonly ReceivedMessage[]> {
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: queueUrl,
      MaxNumberOfMessages: Math.min(max, MAX_RECEIVED),
      WaitTimeSeconds: waitSeconds,
      MessageSystemAttributeNames: [...WANTED_ATTRIBUTES],
    }),
  );
  return Messages.map(toReceived);
}

function toReceived({ MessageId, ReceiptHandle, Body, Attributes = {} }: Message): ReceivedMessage {
  if (MessageId === undefined || ReceiptHandle === undefined || Body === undefined) {
    throw new Fault("DEFECT", "the queue handed out a message without an id, a receipt or a body");
  }
  const { MessageGroupId: group, MessageDeduplicationId: deduplicationId } = Attributes;
  return {
    id: MessageId,
    receipt: ReceiptHandle,
    body: Body,
    ...(group === undefined ? {} : { group }),
    ...(deduplicationId === undefined ? {} : { deduplicationId }),
    sentAt: toNumber("SentTimestamp", Attributes),
    firstReceivedAt: toNumber("ApproximateFirstReceiveTimestamp", Attributes),
    receiveCount: toNumber("ApproximateReceiveCount", Attributes),
  };
}

function toNumber(name: MessageSystemAttributeName, attributes: NonNullable<Message["Attributes"]>): number {
  const text = attributes[name] ?? "";
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new Fault("DEFECT", `the queue handed out a message whose ${name} is no number`);
}

const VOID_RECEIPT: ReadonlySet<string> = new Set(["ReceiptHandleIsInvalid", "MessageNotInflight"]);

async function unlessVoid(answer: Promise<unknown>): Promise<boolean> {
  try {
    await answer;
    return true;
  } catch (error) {
    if (error instanceof SQSServiceException && isVoidReceipt(error)) return false;
    throw error;
  }
}

/** A FIFO queue says of a receipt that is over that a parameter is not valid, and only the text says which. */
function isVoidReceipt({ name, message }: SQSServiceException): boolean {
  return VOID_RECEIPT.has(name) || (name === "InvalidParameterValue" && /receipt handle has expired/i.test(message));
}
