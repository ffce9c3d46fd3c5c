import { Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import { parseStrictJson } from "../contract/json.ts";
import { Notification, type RefreshMessage } from "../contract/notification.ts";
import type { EventQueue, FailedMessages, Log, ObjectStore, ReceivedMessage } from "../contract/ports.ts";
import { toViolations } from "../contract/violations.ts";
import { type BucketRules, bucketOf, type DebounceRecord, deduplicationId, noteBucket } from "./debounce.ts";
import { changeDebounceRecord } from "./debounce-store.ts";

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

const MAX_DEPTH = 32;

/** A message that cannot be read fails alone; a server whose record or queue fails does so with its own messages only. */
export async function takeNotifications(
  messages: readonly ReceivedMessage[],
  context: NotifyContext,
): Promise<FailedMessages> {
  const failed = new Map<string, Fault>();
  const byServer = new Map<string, Incoming[]>();
  for (const message of messages) {
    const notification = readNotification(message.body, context.servers);
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

/** `REQUEST_INVALID` for what is no notification, or of a server that is not declared. */
export function readNotification(body: string, servers: ReadonlySet<string>): Outcome<Notification> {
  const json = parseStrictJson(body, { maxDepth: MAX_DEPTH });
  if (!json.ok) return json;
  const parsed = Notification.safeParse(json.value);
  if (!parsed.success) {
    const violations = toViolations(parsed.error);
    const [first] = violations;
    const message = `the notification is not valid: ${first?.path || "/"} ${first?.message}`;
    return refuse("REQUEST_INVALID", message, { violations });
  }
  return checkServer(parsed.data.server, servers) ?? succeed(parsed.data);
}

/** The refusal, under the path, of a server that is not declared; undefined for one that is. */
export function checkServer(
  server: string,
  servers: ReadonlySet<string>,
  path = "/server",
): Outcome<never> | undefined {
  if (servers.has(server)) return undefined;
  const declared = servers.size === 0 ? "none is declared" : `declared are ${[...servers].sort().join(", ")}`;
  const message = `no MCP server is called "${server}"; ${declared}`;
  return refuse("REQUEST_INVALID", message, { violations: [{ path, message }] });
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
