import { Fault } from "../contract/fault.ts";
import { Notification, type RefreshMessage } from "../contract/notification.ts";
import type { EventQueue, FailedMessages, Log, ObjectStore, ReceivedMessage } from "../contract/ports.ts";
import { type BucketRules, bucketOf, type DebounceRecord, deduplicationId, noteBucket } from "./debounce.ts";
import { changeDebounceRecord } from "./debounce-store.ts";
import { readMessage } from "./read-message.ts";

/** From the notifications queue to the refresh queue: one delayed message a server and bucket. */

export type NotifyContext = {
  readonly refreshQueue: EventQueue;
  readonly store: ObjectStore;
  readonly rules: BucketRules;
  /** Names of the declared servers. */
  readonly servers: ReadonlySet<string>;
  readonly log: Log;
};

type Incoming = { readonly id: string; readonly sentAt: number; readonly notification: Notification };

/**
 * A message that cannot be read fails alone; a server whose record or queue fails does so with its own messages only.
 */
export async function takeNotifications(
  messages: readonly ReceivedMessage[],
  context: NotifyContext,
): Promise<FailedMessages> {
  const failed = new Map<string, Fault>();
  const byServer = new Map<string, Incoming[]>();
  for (const message of messages) {
    const notification = readMessage(message.body, { schema: Notification, servers: context.servers });
    if (!notification.ok) failed.set(message.id, notification.fault);
    else {
      const { server } = notification.value;
      // What claims to come from the future would be counted on by messages that come before it.
      const sentAt = Math.min(message.sentAt, message.firstReceivedAt);
      const incoming = { id: message.id, sentAt, notification: notification.value };
      byServer.set(server, [...(byServer.get(server) ?? []), incoming]);
    }
  }
  const outcomes = await Promise.all(
    [...byServer].map(async ([server, incoming]) => ({ incoming, fault: await pass(server, incoming, context) })),
  );
  for (const { incoming, fault } of outcomes)
    if (fault !== undefined) for (const { id } of incoming) failed.set(id, fault);
  return failed;
}

/** Sends the buckets' messages, then notes the newest: the other way round, a crash between would lose a change. */
async function pass(server: string, incoming: readonly Incoming[], context: NotifyContext): Promise<Fault | undefined> {
  const { refreshQueue, store, rules } = context;
  try {
    for (const [bucket, sources] of toBuckets(incoming, rules)) {
      const message: RefreshMessage = { server, bucket, sources };
      const body = JSON.stringify(message);
      await refreshQueue.send({ body, group: server, deduplicationId: deduplicationId(server, bucket) });
    }
    await changeDebounceRecord(store, server, (record) => noteAll(record, incoming, rules));
    return undefined;
  } catch (error) {
    return error instanceof Fault
      ? error
      : new Fault("DEFECT", `the notifications of ${server} failed`, { cause: error });
  }
}

function noteAll(
  record: DebounceRecord | undefined,
  incoming: readonly Incoming[],
  rules: BucketRules,
): DebounceRecord | undefined {
  return incoming.reduce<DebounceRecord | undefined>(
    (noted, { sentAt }) => noteBucket(noted, { bucket: bucketOf(sentAt, rules), sentAt }, rules),
    record,
  );
}

/** In ascending order, each with its sources, sorted. */
function toBuckets(incoming: readonly Incoming[], rules: BucketRules): ReadonlyMap<number, RefreshMessage["sources"]> {
  const buckets = new Map<number, Set<RefreshMessage["sources"][number]>>();
  for (const { sentAt, notification } of incoming) {
    const bucket = bucketOf(sentAt, rules);
    buckets.set(bucket, (buckets.get(bucket) ?? new Set()).add(notification.source ?? "caller"));
  }
  return new Map([...buckets].sort(([a], [b]) => a - b).map(([bucket, sources]) => [bucket, [...sources].sort()]));
}
