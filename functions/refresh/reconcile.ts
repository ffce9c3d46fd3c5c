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
  readonly due: DueRules;
};

export type DueRules = {
  /** For a server that does not say how long its list is good. */
  readonly intervalMs: number;
  /** Past this age a list is no longer gone by, however long the server says that it is good. */
  readonly maxListAgeMs: number;
};

/** A server that says 0 would be asked without end. */
const LEAST_INTERVAL_MS = 60_000;
const FIRST_RETRY_MS = 30_000;
const LAST_RETRY_MS = 3600_000;
/** Up to this share later, so that servers that were fetched together are not asked together for ever. */
const JITTER = 0.1;
/** From being due to another list: a minute until the schedule looks, the queue's wait, and the fetching. */
const FETCHING_MS = 180_000;

/** The names of the servers that were due, in the order of their declaration. */
export async function reconcile({
  servers,
  store,
  notifications,
  clock,
  log,
  due: rules,
}: ReconcileContext): Promise<readonly string[]> {
  const published = await readPublished(store);
  const entries = new Map(published?.record.servers.map((entry) => [entry.name, entry]));
  const now = clock();
  for (const { name } of servers) {
    log("info", "server", { server: name, list_age_s: toListAge(entries.get(name), { ...rules, now }) });
  }
  const due = servers.filter((config) => isDue(config, entries.get(config.name), { ...rules, now }));
  for (const { name } of due) {
    const notification: Notification = { server: name, method: LIST_CHANGED, source: "schedule" };
    await notifications.send({ body: JSON.stringify(notification) });
  }
  if (due.length > 0) log("info", "tool lists are due", { servers: due.map(({ name }) => name).join(" ") });
  return due.map(({ name }) => name);
}

/**
 * Seconds, for the metric that says how stale a server is; one without a list is as stale as one whose list is too old.
 */
function toListAge(
  entry: ServerRecord | undefined,
  { now, maxListAgeMs }: { readonly now: number; readonly maxListAgeMs: number },
): number {
  const listedAt = entry?.listed_at ?? null;
  const age = listedAt === null ? maxListAgeMs + 1000 : Math.max(0, now - Date.parse(listedAt));
  return Math.round(age / 1000);
}

/** Always, for a server that nothing was published about under its present configuration, or only in the future. */
function isDue(
  config: MCPServerConfig,
  entry: ServerRecord | undefined,
  rules: DueRules & { readonly now: number },
): boolean {
  if (entry === undefined || entry.config !== digestOfConfig(config)) return true;
  const attemptedAt = Date.parse(entry.attempted_at);
  // A clock that was ahead and has gone back would put everything off by as much.
  if (attemptedAt > rules.now + LEAST_INTERVAL_MS) return true;
  const wait = entry.failures > 0 ? retryAfter(entry.failures) : waitFor(entry, rules);
  return rules.now >= attemptedAt + wait * (1 + JITTER * shareOf(entry));
}

/** What the server says, but never so long that the list would be too old before another one is there. */
function waitFor({ ttl_ms }: ServerRecord, { intervalMs, maxListAgeMs }: DueRules): number {
  const longest = (maxListAgeMs - FETCHING_MS) / (1 + JITTER);
  return Math.max(Math.min(ttl_ms ?? intervalMs, longest), LEAST_INTERVAL_MS);
}

function retryAfter(failures: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LAST_RETRY_MS);
}

/** From 0 to 1, another one for each server and attempt, and the same for whoever asks. */
function shareOf({ name, attempted_at }: ServerRecord): number {
  return Number.parseInt(sha256Hex(`${name} ${attempted_at}`).slice(0, 8), 16) / 0xffffffff;
}
