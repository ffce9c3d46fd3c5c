import { readPublished } from "../catalog/published-catalog.ts";
import { type Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import { RefreshMessage } from "../contract/notification.ts";
import type { FailedMessages, ReceivedMessage } from "../contract/ports.ts";
import type { RefreshCause } from "../contract/refresh.ts";
import { type DebounceRules, decide } from "./debounce.ts";
import { readDebounceRecord } from "./debounce-store.ts";
import { readMessage } from "./read-message.ts";
import { type RefreshContext, refreshServers } from "./refresh-servers.ts";

/** From the refresh queue to a published catalog. */

export type TakeRefreshContext = RefreshContext & { readonly rules: DebounceRules };

type Incoming = { readonly id: string; readonly receivedAt: number; readonly message: RefreshMessage };

/**
 * The messages of one server together: they were received together, so one fetch answers them all, and a server that
 * hangs costs one time limit and not one for each. Several servers at the same time, so that a slow one holds nobody
 * up.
 */
export async function takeRefreshes(
  messages: readonly ReceivedMessage[],
  context: TakeRefreshContext,
): Promise<FailedMessages> {
  const failed = new Map<string, Fault>();
  const byServer = new Map<string, Incoming[]>();
  const servers = new Set(context.installed.servers.map(({ name }) => name));
  for (const { id, body, firstReceivedAt } of messages) {
    const message = readMessage(body, { schema: RefreshMessage, servers });
    if (!message.ok) {
      failed.set(id, message.fault);
      continue;
    }
    const { server } = message.value;
    const incoming = { id, receivedAt: firstReceivedAt, message: message.value };
    byServer.set(server, [...(byServer.get(server) ?? []), incoming]);
  }
  const takeAll = async ([server, incoming]: [string, readonly Incoming[]]) => {
    const taken = await take(server, incoming, context);
    if (!taken.ok) for (const { id } of incoming) failed.set(id, taken.fault);
  };
  await Promise.all([...byServer].map(takeAll));
  return failed;
}

async function take(
  server: string,
  incoming: readonly Incoming[],
  context: TakeRefreshContext,
): Promise<Outcome<null>> {
  const { store, rules, log, clock } = context;
  try {
    const [record, published] = await Promise.all([readDebounceRecord(store, server), readPublished(store)]);
    const coveredUntil = published?.record.servers.find(({ name }) => name === server)?.covered_until ?? 0;
    const decisions = incoming.map(({ receivedAt, message: { bucket } }) =>
      decide({ bucket, receivedAt, now: clock(), record, coveredUntil }, rules),
    );
    log("info", "refresh messages", { server, decisions: decisions.join(" ") });
    if (!decisions.includes("fetch")) return succeed(null);
    const order = {
      servers: [server],
      cause: toCause(incoming.flatMap(({ message: { sources } }) => sources)),
      coveredUntil: Math.max(...incoming.map(({ receivedAt }) => receivedAt)),
      dryRun: false,
    };
    const refreshed = await refreshServers(order, context, { published });
    return refreshed.ok ? succeed(null) : refreshed;
  } catch (error) {
    return refuse("DEFECT", `the refresh of ${server} failed`, { cause: error });
  }
}

function toCause(sources: RefreshMessage["sources"]): RefreshCause["type"] {
  if (sources.includes("caller")) return "notification";
  return sources.includes("watch") ? "watch" : "schedule";
}
