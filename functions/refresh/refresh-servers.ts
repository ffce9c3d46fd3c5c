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
  /** For publishing, once the lists are there. */
  readonly publishTimeoutMs: number;
  /** At the same time. */
  readonly listedAtOnce: number;
};

/** In each round that is lost another refresh has won, so this many would have to run side by side. */
const MAX_ROUNDS = 100;

/**
 * The record that was published, or would be. A server that fails keeps its last good list and is marked; that is no
 * refusal. One that there was no time to ask is left as it was. `SERVER_UNAVAILABLE` when others published in between
 * until the time was over.
 *
 * A list is published only over the very entry that was there before it was fetched. So the lists of one server are
 * published in the order of their fetching, whatever the clocks say: an older run never overwrites a newer one. `known`
 * is for who has just read what is published.
 */
export async function refreshServers(
  order: RefreshOrder,
  context: RefreshContext,
  known?: { readonly published: Published | undefined },
): Promise<Outcome<CatalogRecord>> {
  const { store, log, clock, refreshTimeoutMs, publishTimeoutMs } = context;
  const until = clock() + refreshTimeoutMs;
  const attempts = new Map<string, Attempt>();
  let wanted = order.servers;
  let previous = known === undefined ? await readPublished(store) : known.published;
  for (let round = 1; ; round += 1) {
    for (const attempt of await listAll(wanted, { previous, until }, context)) attempts.set(attempt.server, attempt);
    const published = await publishOver([...attempts.values()], order, context);
    if (published.record !== undefined) {
      if (!order.dryRun) logRefresh(log, published.record);
      return succeed(published.record);
    }
    // Somebody else published: what was fetched stands, but for a server whose entry is another one now.
    previous = published.previous;
    wanted = [...attempts.values()]
      .filter(({ server, over }) => entryOf(previous, server) !== over)
      .map(({ server }) => server);
    const late = wanted.length > 0 ? clock() >= until : clock() >= until + publishTimeoutMs;
    if (late || round === MAX_ROUNDS)
      return refuse("SERVER_UNAVAILABLE", "other refreshes published meanwhile until the time was over; ask again");
  }
}

type Publication =
  | { readonly record: CatalogRecord }
  | { readonly record: undefined; readonly previous: Published | undefined };

/** Reads, builds and writes at once; nothing is written when an attempt is over an entry that is gone. */
async function publishOver(
  attempts: readonly Attempt[],
  order: RefreshOrder,
  context: RefreshContext,
): Promise<Publication> {
  const previous = await readPublished(context.store);
  if (attempts.some(({ server, over }) => entryOf(previous, server) !== over)) return { record: undefined, previous };
  const record = toNextRecord({ previous: previous?.record, attempts, order, context });
  if (order.dryRun || (await publish(context.store, record, previous))) return { record };
  return { record: undefined, previous: await readPublished(context.store) };
}

/** Generation of the server's entry, 0 for none: what tells one entry from another. */
function entryOf(previous: Published | undefined, server: string): number {
  return previous?.record.servers.find(({ name }) => name === server)?.generation ?? 0;
}

type Asking = { readonly previous: Published | undefined; readonly until: number };

/** Several at a time, each as soon as one before it has ended. A server whose turn comes too late is not asked. */
async function listAll(
  servers: readonly string[],
  { previous, until }: Asking,
  context: RefreshContext,
): Promise<readonly Attempt[]> {
  const { clock, log, listedAtOnce } = context;
  const waiting = [...servers];
  const attempts: Attempt[] = [];
  const work = async () => {
    for (let server = waiting.shift(); server !== undefined; server = waiting.shift()) {
      if (clock() < until) attempts.push(await attempt({ server, over: entryOf(previous, server), until }, context));
      else log("warn", "tool list not asked for: the time is over", { server });
    }
  };
  await Promise.all(Array.from({ length: Math.min(listedAtOnce, servers.length) }, work));
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

/** One line a refresh, from which its metrics are counted. */
function logRefresh(log: Log, { generation, cause, result, changes }: CatalogRecord): void {
  log("info", "refresh", {
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
  for (const [skill, reason] of Object.entries(result.failed)) {
    log("warn", "skill has no whole tool set", { skill, reason });
  }
}
