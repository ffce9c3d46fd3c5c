import { readPublished } from "../catalog/published-catalog.ts";
import { sha256Hex } from "../contract/json.ts";
import { digestOfConfig, type MCPServerConfig } from "../contract/mcp-server.ts";
import { LIST_CHANGED, type Notification } from "../contract/notification.ts";
import type { Clock, EventQueue, Log, ObjectStore } from "../contract/ports.ts";
import type { ServerRecord } from "../contract/refresh.ts";

/**
 * What was never told cannot be missed by a queue: lists that have become due are fetched without a notification. A
 * server is due when its list is older than the server says that it is good, or than the operator's interval; a server
 * that failed is tried again ever later. Nobody fetches here: a notification goes into the queue like any other.
 */

export type ReconcileContext = {
  readonly servers: readonly MCPServerConfig[];
  readonly store: ObjectStore;
  readonly notifications: EventQueue;
  readonly clock: Clock;
  readonly log: Log;
  /** For a server that does not say how long its list is good. */
  readonly intervalMs: number;
};

/** A server that says 0 would be asked without end. */
const LEAST_INTERVAL_MS = 60_000;
const FIRST_RETRY_MS = 30_000;
const LAST_RETRY_MS = 3600_000;
/** Up to this share later, so that servers that were fetched together are not asked together for ever. */
const JITTER = 0.1;

/** The names of the servers that were due, in the order of their declaration. */
export async function reconcile({
  servers,
  store,
  notifications,
  clock,
  log,
  intervalMs,
}: ReconcileContext): Promise<readonly string[]> {
  const published = await readPublished(store);
  const entries = new Map(published?.record.servers.map((entry) => [entry.name, entry]));
  const now = clock();
  const due = servers.filter((config) => dueAt(config, entries.get(config.name), intervalMs) <= now);
  for (const { name } of due) {
    const notification: Notification = { server: name, method: LIST_CHANGED, source: "schedule" };
    await notifications.send({ body: JSON.stringify(notification) });
  }
  if (due.length > 0) log("info", "tool lists are due", { servers: due.map(({ name }) => name).join(" ") });
  return due.map(({ name }) => name);
}

/** Epoch ms; 0 for a server that nothing was published about under its present configuration. */
export function dueAt(config: MCPServerConfig, entry: ServerRecord | undefined, intervalMs: number): number {
  if (entry === undefined || entry.config !== digestOfConfig(config)) return 0;
  const wait =
    entry.failures > 0 ? retryAfter(entry.failures) : Math.max(entry.ttl_ms ?? intervalMs, LEAST_INTERVAL_MS);
  return Date.parse(entry.attempted_at) + wait * (1 + JITTER * shareOf(entry));
}

function retryAfter(failures: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LAST_RETRY_MS);
}

/** From 0 to 1, another one for each server and attempt, and the same for whoever asks. */
function shareOf({ name, attempted_at }: ServerRecord): number {
  return Number.parseInt(sha256Hex(`${name} ${attempted_at}`).slice(0, 8), 16) / 0xffffffff;
}
