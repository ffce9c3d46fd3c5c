import type { Context, SQSBatchResponse, SQSEvent } from "aws-lambda";
import * as z from "zod";
import { Fault } from "../contract/fault.ts";
import type { FailedMessages, Log, ReceivedMessage } from "../contract/ports.ts";
import { quoted } from "../contract/printable.ts";

/**
 * A Lambda behind a queue: the batch goes to `process` as messages, and the ids of those that failed go back, so that
 * only they come again. An answer that names nothing deletes the whole batch, and one that names what is not in it
 * brings all of it back; so the answer is made here, from the batch's own ids.
 */

export type QueueHandlerOptions = {
  readonly log: Log;
  /**
   * A rejection fails the whole batch. Of an ordered queue, one after another, and no group after its first failure.
   */
  readonly process: (messages: readonly ReceivedMessage[]) => Promise<FailedMessages>;
};

/** Rejects only for what is no event of a queue at all: then nothing of it may pass for done. */
export type QueueHandler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>;

export function createQueueHandler(options: QueueHandlerOptions): QueueHandler {
  return async (event, context) => {
    const entries = recordsOf(event).flatMap((record) => toEntry(record, options.log));
    const unreadable = failuresOf(entries, new Map());
    const readable = entries.filter(({ id }) => !unreadable.has(id));
    const failures = failuresOf(entries, await processAll(readable, options));
    const requestId = typeof context?.awsRequestId === "string" ? context.awsRequestId : "unknown";
    for (const entry of entries) {
      const fault = failures.get(entry.id);
      if (fault !== undefined) logFailure(entry, fault, { log: options.log, requestId });
    }
    return { batchItemFailures: [...failures.keys()].map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

function recordsOf(event: unknown): readonly unknown[] {
  const records = typeof event === "object" && event !== null && "Records" in event ? event.Records : undefined;
  if (!Array.isArray(records)) throw new Fault("DEFECT", "an event of a queue was expected, with a list of records");
  return records;
}

/** A record of the batch that can be named, whether or not it can be read. */
type Entry = { readonly id: string; readonly group: string | undefined; readonly body: string | undefined } & (
  | { readonly message: ReceivedMessage }
  | { readonly fault: Fault }
);

const Digits = z
  .string()
  .regex(/^\d{1,15}$/, "must be a number")
  .transform(Number);

const QueueRecord = z.object({
  messageId: z.string().min(1),
  receiptHandle: z.string(),
  body: z.string(),
  attributes: z.object({
    SentTimestamp: Digits,
    ApproximateFirstReceiveTimestamp: Digits,
    ApproximateReceiveCount: Digits,
    MessageGroupId: z.string().optional(),
    MessageDeduplicationId: z.string().optional(),
  }),
});

/** What is still to be known of a record that lacks something. */
const NamedRecord = z.object({
  messageId: QueueRecord.shape.messageId,
  body: z.string().optional().catch(undefined),
  attributes: z.object({ MessageGroupId: z.string().optional().catch(undefined) }).catch({}),
});

/**
 * None for a record without an id: nothing could be said of it in the answer, and the others must not suffer for it.
 */
function toEntry(record: unknown, log: Log): readonly Entry[] {
  const named = NamedRecord.safeParse(record);
  if (!named.success) {
    log("error", "record of a queue without an id passed over", {
      record: quoted(JSON.stringify(record) ?? "nothing"),
    });
    return [];
  }
  const { messageId: id, body, attributes } = named.data;
  const common = { id, group: attributes.MessageGroupId, body };
  const read = QueueRecord.safeParse(record);
  return [read.success ? { ...common, message: toMessage(read.data) } : { ...common, fault: toFault(read.error) }];
}

function toMessage({ messageId, receiptHandle, body, attributes }: z.infer<typeof QueueRecord>): ReceivedMessage {
  const { MessageGroupId: group, MessageDeduplicationId: deduplicationId } = attributes;
  return {
    id: messageId,
    receipt: receiptHandle,
    body,
    ...(group === undefined ? {} : { group }),
    ...(deduplicationId === undefined ? {} : { deduplicationId }),
    sentAt: attributes.SentTimestamp,
    firstReceivedAt: attributes.ApproximateFirstReceiveTimestamp,
    receiveCount: attributes.ApproximateReceiveCount,
  };
}

function toFault({ issues }: z.ZodError): Fault {
  const fields = issues.map(({ path }) => path.join(".")).join(", ");
  return new Fault("DEFECT", `the record of the queue is not as AWS describes it: ${fields}`);
}

/** Once a message of a group has failed, the later ones fail too: done before it, they would be out of order. */
function failuresOf(entries: readonly Entry[], failed: FailedMessages): FailedMessages {
  const failures = new Map<string, Fault>();
  const broken = new Map<string, Fault>();
  for (const entry of entries) {
    const own = "fault" in entry ? entry.fault : failed.get(entry.id);
    const fault = own ?? heldUpBy(entry.group === undefined ? undefined : broken.get(entry.group));
    if (fault === undefined) continue;
    failures.set(entry.id, fault);
    if (entry.group !== undefined) broken.set(entry.group, fault);
  }
  return failures;
}

function heldUpBy(earlier: Fault | undefined): Fault | undefined {
  return earlier && new Fault(earlier.code, "an earlier message of its group failed, and order is kept");
}

async function processAll(entries: readonly Entry[], { log, process }: QueueHandlerOptions): Promise<FailedMessages> {
  const messages = entries.flatMap((entry) => ("message" in entry ? entry.message : []));
  if (messages.length === 0) return new Map();
  try {
    return new Map(await process(messages));
  } catch (error) {
    log("error", "batch of a queue failed", { error });
    const fault = new Fault("DEFECT", "the whole batch failed", { cause: error });
    return new Map(messages.map(({ id }) => [id, fault]));
  }
}

function logFailure(entry: Entry, fault: Fault, { log, requestId }: { log: Log; requestId: string }): void {
  // A message that nobody can read is whoever sent it's to answer for; what is ours somebody must hear of.
  log(fault.remedy === "us" ? "error" : "warn", "message of a queue failed", {
    request_id: requestId,
    message_id: entry.id,
    ...("message" in entry ? { receive_count: entry.message.receiveCount } : {}),
    code: fault.code,
    reason: fault.message,
    ...(fault.cause === undefined ? {} : { error: fault }),
    ...(entry.body === undefined ? {} : { body: quoted(entry.body) }),
  });
}
