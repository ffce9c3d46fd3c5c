import { createHash } from "node:crypto";
import type { SQSEvent, SQSRecord } from "aws-lambda";
import type { ReceivedMessage } from "../functions/contract/ports.ts";

/** What Lambda puts between a queue and a function, so that the very handler of the cloud runs on one machine. */

/** A batch of messages as Lambda delivers it from SQS, attribute values as text and all. */
export function toSqsEvent(messages: readonly ReceivedMessage[], queueName: string): SQSEvent {
  return { Records: messages.map((message) => toRecord(message, queueName)) };
}

function toRecord(message: ReceivedMessage, queueName: string): SQSRecord {
  const { group, deduplicationId } = message;
  return {
    messageId: message.id,
    receiptHandle: message.receipt,
    body: message.body,
    attributes: {
      ApproximateReceiveCount: String(message.receiveCount),
      SentTimestamp: String(message.sentAt),
      SenderId: "local",
      ApproximateFirstReceiveTimestamp: String(message.firstReceivedAt),
      ...(group === undefined ? {} : { MessageGroupId: group }),
      ...(deduplicationId === undefined ? {} : { MessageDeduplicationId: deduplicationId }),
    },
    messageAttributes: {},
    // What SQS sends along to show that nothing was lost on the way.
    md5OfBody: createHash("md5").update(message.body).digest("hex"),
    eventSource: "aws:sqs",
    eventSourceARN: `arn:aws:sqs:local:000000000000:${queueName}`,
    awsRegion: "local",
  };
}

/**
 * Ids of the messages that Lambda takes for failed after such an answer: those named, none for no answer or an empty
 * list, and all of them for an answer that names anything else, so that nothing passes for done by a mistake.
 */
export function readBatchResponse(response: unknown, messages: readonly ReceivedMessage[]): ReadonlySet<string> {
  const all = new Set(messages.map(({ id }) => id));
  const failures = fieldOf(response, "batchItemFailures") ?? [];
  if (!Array.isArray(failures)) return all;
  const named = failures.map((failure: unknown) => fieldOf(failure, "itemIdentifier"));
  const ids = named.filter((id): id is string => typeof id === "string" && all.has(id));
  return ids.length === named.length ? new Set(ids) : all;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
