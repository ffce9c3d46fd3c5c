import { DeleteMessageBatchCommand, type Message, ReceiveMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import * as z from "zod";
import { readBatchResponse } from "./batch-response.ts";
import type { Lambda } from "./lambda.ts";
import type { Queue } from "./queues.ts";
import { toSqsEvent } from "./sqs-event.ts";

/**
 * What an event source mapping does between a queue and a function: receives batches, invokes, deletes what was done
 * and leaves the rest to the queue, which hands it out again when it is no longer hidden.
 */

/** What is not named here is refused: a property that is passed over would look as if it held. */
export const MappingProperties = z.strictObject({
  EventSourceArn: z.string(),
  FunctionName: z.string(),
  /** More than one request gives would be gathered from several, which nothing here does. */
  BatchSize: z.int().min(1).max(10).default(10),
  MaximumBatchingWindowInSeconds: z.literal(0).optional(),
  FunctionResponseTypes: z.array(z.literal("ReportBatchItemFailures")).default([]),
  ScalingConfig: z.strictObject({ MaximumConcurrency: z.int().min(2) }).optional(),
  Enabled: z.literal(true).optional(),
});

export type MappingSetup = {
  readonly id: string;
  readonly queue: Queue;
  readonly lambda: Lambda;
  readonly batchSize: number;
  /** Batches at once. */
  readonly concurrency: number;
  /** The function's answer says which messages failed; otherwise a batch is done or failed as a whole. */
  readonly partial: boolean;
};

export type Delivery = {
  readonly messages: readonly Message[];
  /** Ids of those that stay in the queue. */
  readonly failed: ReadonlySet<string>;
};

export type Mapping = {
  /** What was handed to the function so far, in the order in which it was done with. */
  readonly deliveries: readonly Delivery[];
  /** Resolves once the last request for messages was answered, and what it gave is done with. */
  close(): Promise<void>;
};

export const DEFAULT_CONCURRENCY = 5;
const WAIT_SECONDS = 1;

export function startMapping(setup: MappingSetup, client: SQSClient): Mapping {
  const deliveries: Delivery[] = [];
  let closed = false;
  const work = async () => {
    while (!closed) {
      const messages = await receive(setup, client);
      if (messages.length > 0) deliveries.push({ messages, failed: await deliver(messages, setup, client) });
    }
  };
  const workers = Array.from({ length: setup.concurrency }, work);
  return {
    deliveries,
    close: async () => {
      // Not broken off: a message that is on its way to nobody would stay hidden.
      closed = true;
      await Promise.all(workers);
    },
  };
}

async function receive({ queue, batchSize }: MappingSetup, client: SQSClient): Promise<readonly Message[]> {
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: queue.url,
      MaxNumberOfMessages: batchSize,
      WaitTimeSeconds: WAIT_SECONDS,
      MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"],
    }),
  );
  return Messages;
}

async function deliver(
  messages: readonly Message[],
  { queue, lambda, partial }: MappingSetup,
  client: SQSClient,
): Promise<ReadonlySet<string>> {
  const [, , , region = ""] = queue.arn.split(":");
  const invoked = await lambda.invoke(toSqsEvent(messages, { arn: queue.arn, region }));
  const ids = messages.flatMap(({ MessageId }) => MessageId ?? []);
  const failed = invoked.ok ? (partial ? readBatchResponse(invoked.value, ids) : new Set<string>()) : new Set(ids);
  const done = messages.filter(({ MessageId = "" }) => !failed.has(MessageId));
  if (done.length > 0) {
    const Entries = done.map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle }));
    await client.send(new DeleteMessageBatchCommand({ QueueUrl: queue.url, Entries }));
  }
  return failed;
}
