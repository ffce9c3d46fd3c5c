import type { Installation } from "../catalog/catalog.ts";
import { type Published, publish, readPublished } from "../catalog/published-catalog.ts";
import { type Outcome, refuse, succeed } from "../contract/fault.ts";
import { digestOfConfig } from "../contract/mcp-server.ts";
import type { Clock, Log, ObjectStore, ToolListing, ToolSource } from "../contract/ports.ts";
import type { CatalogRecord } from "../contract/refresh.ts";
import { type Attempt, type RefreshOrder, toNextRecord } from "./next-record.ts";

/** Fetches lists, builds the next catalog whole, and publishes it by compare-and-swap. */

export type RefreshContext = {
  readonly installed: Installation;
  readonly store: ObjectStore;
  readonly toolSource: ToolSource;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxListAgeMs: number;
  /** For fetching one server's list. */
  readonly listTimeoutMs: number;
  /** For the lists of all servers of an order. */
  readonly refreshTimeoutMs: number;
};

/** Each lost round means that another refresh published; only of the same server must the list be fetched again. */
const MAX_ROUNDS = 20;
const LISTED_AT_ONCE = 8;

/**
 * The record that was published, or would be. A server that fails keeps its last good list and is marked; that is no
 * refusal. `SERVER_UNAVAILABLE` when others published in between too many times.
 *
 * A list is published only over the very entry that was there before it was fetched. So the lists of one server are
 * published in the order of their fetching, whatever the clocks say: an older run never overwrites a newer one.
 */
export async function refreshServers(order: RefreshOrder, context: RefreshContext): Promise<Outcome<CatalogRecord>> {
  const { store, log, clock, refreshTimeoutMs } = context;
  const until = clock() + refreshTimeoutMs;
  const attempts = new Map<string, Attempt>();
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const previous = await readPublished(store);
    const outdated = order.servers.filter((name) => attempts.get(name)?.over !== entryOf(previous, name));
    for (const attempt of await listAll(outdated, { previous, until }, context)) attempts.set(attempt.server, attempt);
    const record = toNextRecord({ previous: previous?.record, attempts: [...attempts.values()], order, context });
    if (order.dryRun) return succeed(record);
    if (await publish(store, record, previous)) {
      logRefresh(log, record);
      return succeed(record);
    }
  }
  return refuse("SERVER_UNAVAILABLE", `other refreshes published ${MAX_ROUNDS} times meanwhile; ask again`);
}

/** Generation of the server's entry, 0 for none: what tells one entry from another. */
function entryOf(previous: Published | undefined, server: string): number {
  return previous?.record.servers.find(({ name }) => name === server)?.generation ?? 0;
}

async function listAll(
  servers: readonly string[],
  { previous, until }: { readonly previous: Published | undefined; readonly until: number },
  context: RefreshContext,
): Promise<readonly Attempt[]> {
  const attempts: Attempt[] = [];
  for (let from = 0; from < servers.length; from += LISTED_AT_ONCE) {
    const some = servers.slice(from, from + LISTED_AT_ONCE);
    const listing = some.map((server) => attempt({ server, over: entryOf(previous, server), until }, context));
    attempts.push(...(await Promise.all(listing)));
  }
  return attempts;
}

type Asked = { readonly server: string; readonly over: number; readonly until: number };

async function attempt({ server, over, until }: Asked, context: RefreshContext): Promise<Attempt> {
  const { clock, toolSource, installed, listTimeoutMs, log } = context;
  const config = installed.servers.find(({ name }) => name === server);
  const startedAt = clock();
  const listed: Outcome<ToolListing> =
    config === undefined
      ? refuse("DEFECT", `no MCP server is called "${server}"`)
      : await toolSource.list(server, { deadline: Math.min(startedAt + listTimeoutMs, until) });
  if (!listed.ok) {
    const { code, message, cause } = listed.fault;
    log("warn", "tool list not fetched", { server, code, reason: message, cause });
  }
  return { server, over, startedAt, listed, config: config === undefined ? "" : digestOfConfig(config) };
}

function logRefresh(log: Log, { generation, cause, result, changes }: CatalogRecord): void {
  log("info", "catalog published", {
    generation,
    cause: cause.type,
    servers: cause.servers.join(" "),
    refreshed: result.refreshed.length,
    failed: Object.keys(result.failed).length,
    skipped: result.skipped.length,
    added: changes.added.length,
    removed: changes.removed.length,
    changed: changes.changed.length,
  });
  for (const [skill, reason] of Object.entries(result.failed))
    log("warn", "skill has no whole tool set", { skill, reason });
}
