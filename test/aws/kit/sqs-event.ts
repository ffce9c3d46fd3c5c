import { createHash } from "node:crypto";
import type { Message, MessageAttributeValue } from "@aws-sdk/client-sqs";
import type { SQSEvent, SQSMessageAttribute, SQSRecord } from "aws-lambda";

/** A batch of messages as an event source mapping hands it to a function. */

export type SqsSource = { readonly arn: string; readonly region: string };

/** Of messages that were received with all their attributes. */
export function toSqsEvent(messages: readonly Message[], source: SqsSource): SQSEvent {
  return { Records: messages.map((message) => toRecord(message, source)) };
}

function toRecord(message: Message, { arn, region }: SqsSource): SQSRecord {
  const { MessageId = "", ReceiptHandle = "", Body = "", Attributes = {}, MessageAttributes = {} } = message;
  const { ApproximateReceiveCount = "", SentTimestamp = "", SenderId = "", ...others } = Attributes;
  const { ApproximateFirstReceiveTimestamp = "", ...ordering } = others;
  return {
    messageId: MessageId,
    receiptHandle: ReceiptHandle,
    body: Body,
    attributes: { ApproximateReceiveCount, SentTimestamp, SenderId, ApproximateFirstReceiveTimestamp, ...ordering },
    messageAttributes: Object.fromEntries(
      Object.entries(MessageAttributes).map(([name, each]) => [name, toAttribute(each)]),
    ),
    md5OfBody: createHash("md5").update(Body).digest("hex"),
    eventSource: "aws:sqs",
    eventSourceARN: arn,
    awsRegion: region,
  };
}

function toAttribute({ StringValue, BinaryValue, DataType = "" }: MessageAttributeValue): SQSMessageAttribute {
  return {
    ...(StringValue === undefined ? {} : { stringValue: StringValue }),
    ...(BinaryValue === undefined ? {} : { binaryValue: Buffer.from(BinaryValue).toString("base64") }),
    stringListValues: [],
    binaryListValues: [],
    dataType: DataType,
  };
}
