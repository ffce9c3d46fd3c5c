import { type Installation, toCatalog } from "../catalog/catalog.ts";
import type { Outcome } from "../contract/fault.ts";
import { digestOfDefinition, mcpRef, type OfferedTool } from "../contract/offered-tool.ts";
import type { Clock, ToolListing } from "../contract/ports.ts";
import type { CatalogChanges, CatalogRecord, RefreshCause, ServerRecord } from "../contract/refresh.ts";
import type { ToolRef } from "../contract/tool.ts";

/** The next catalog, whole, from the one before and what the servers answered. */

export type RefreshOrder = {
  /** Declared servers whose lists are fetched. */
  readonly servers: readonly string[];
  readonly cause: RefreshCause["type"];
  /** Notifications that the queue got before, on its own clock, are answered by this fetch. */
  readonly coveredUntil?: number | undefined;
  /** Compute and answer, publish nothing. */
  readonly dryRun: boolean;
};

/** One fetching of a list. */
export type Attempt = {
  readonly server: string;
  /** Digest of the configuration under which it was fetched. */
  readonly config: string;
  /** Generation of the entry that was there before the fetching began; 0 for none. */
  readonly over: number;
  /** Epoch ms. */
  readonly startedAt: number;
  readonly listed: Outcome<ToolListing>;
};

export type NextSource = {
  readonly previous: CatalogRecord | undefined;
  readonly attempts: readonly Attempt[];
  readonly order: RefreshOrder;
  readonly context: {
    readonly installed: Installation;
    readonly clock: Clock;
    readonly maxListAgeMs: number;
  };
};

export function toNextRecord({ previous, attempts, order, context }: NextSource): CatalogRecord {
  const { installed, clock, maxListAgeMs } = context;
  const now = clock();
  const generation = (previous?.generation ?? 0) + 1;
  const entries = new Map(previous?.servers.map((server) => [server.name, server]));
  for (const attempt of attempts) {
    const entry = entries.get(attempt.server);
    const before = entry?.config === attempt.config ? entry : undefined;
    const { coveredUntil } = order;
    entries.set(attempt.server, toEntry(attempt, { before, generation, coveredUntil, policy: installed.policy }));
  }
  const declared = new Set(installed.servers.map(({ name }) => name));
  const servers = [...entries.values()].filter(({ name }) => declared.has(name)).toSorted(byName);
  const record: CatalogRecord = {
    version: 1,
    generation,
    refreshed_at: new Date(now).toISOString(),
    cause: { type: order.cause, servers: attempts.map(({ server }) => server).sort() },
    changes: toChanges(previous?.servers ?? [], servers),
    result: { refreshed: [], failed: {}, skipped: [] },
    servers,
    skills: previous?.skills ?? [],
  };
  const { lastRefresh, served } = toCatalog(installed, record, { now, maxListAgeMs });
  const { refreshed, failed, skipped } = lastRefresh;
  return {
    ...record,
    result: { refreshed: [...refreshed], failed: Object.fromEntries(failed), skipped: [...skipped] },
    skills: [...served].map(([name, tools]) => ({ name, tools: [...tools] })),
  };
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}

type EntrySource = {
  /** The entry that was fetched under the same configuration. */
  readonly before: ServerRecord | undefined;
  readonly generation: number;
  readonly coveredUntil: number | undefined;
  readonly policy: Installation["policy"];
};

/** A failed attempt keeps everything that the last good one gave, and answers no notification. */
function toEntry({ server, config, startedAt, listed }: Attempt, source: EntrySource): ServerRecord {
  const { before, generation, coveredUntil, policy } = source;
  const attempted_at = new Date(startedAt).toISOString();
  const common = { name: server, config, attempted_at, generation };
  if (!listed.ok) {
    return {
      ...common,
      status: before?.listed_at ? "stale" : "unlisted",
      listed_at: before?.listed_at ?? null,
      failures: (before?.failures ?? 0) + 1,
      reason: listed.fault.message,
      ttl_ms: before?.ttl_ms ?? null,
      covered_until: before?.covered_until ?? 0,
      tools: before?.tools ?? [],
      quarantined: before?.quarantined ?? [],
      approved: before?.approved ?? [],
    };
  }
  const { tools, quarantined, ttlMs } = listed.value;
  return {
    ...common,
    status: "fresh",
    listed_at: attempted_at,
    failures: 0,
    reason: null,
    ttl_ms: ttlMs ?? null,
    covered_until: coveredUntil ?? before?.covered_until ?? 0,
    tools: [...tools],
    quarantined: [...quarantined],
    approved: toApproved(server, [...(before?.approved ?? []), ...(before?.tools ?? []), ...tools], policy),
  };
}

/**
 * Each approved definition once, so that a change of it can be shown after the server has stopped offering it: the one
 * that the approval names, else the first that was seen under the ref, which no later one can take the place of.
 */
function toApproved(
  server: string,
  seen: readonly OfferedTool[],
  { approved, digests }: Installation["policy"],
): OfferedTool[] {
  const kept = new Map<ToolRef, OfferedTool>();
  for (const tool of seen) {
    const ref = mcpRef(server, tool);
    const wanted = digests.get(ref) ?? digestOfDefinition(tool);
    if (approved.has(ref) && !kept.has(ref) && wanted === digestOfDefinition(tool)) kept.set(ref, tool);
  }
  return [...kept.values()];
}

function toChanges(before: readonly ServerRecord[], after: readonly ServerRecord[]): CatalogChanges {
  const from = offersByName(before);
  const to = offersByName(after);
  const changed = [...to].flatMap(([tool, { ref, digest }]) => {
    const old = from.get(tool);
    return old === undefined || old.digest === digest ? [] : [{ tool, from: old.ref, to: ref }];
  });
  return {
    added: [...to].flatMap(([tool, { ref }]) => (from.has(tool) ? [] : [ref])).sort(),
    removed: [...from].flatMap(([tool, { ref }]) => (to.has(tool) ? [] : [ref])).sort(),
    changed: changed.toSorted((a, b) => (a.tool < b.tool ? -1 : 1)),
  };
}

type Offer = { readonly ref: ToolRef; readonly digest: string };

/** By `server/tool`. */
function offersByName(servers: readonly ServerRecord[]): ReadonlyMap<string, Offer> {
  return new Map(
    servers.flatMap(({ name, tools }) =>
      tools.map(
        (tool) => [`${name}/${tool.name}`, { ref: mcpRef(name, tool), digest: digestOfDefinition(tool) }] as const,
      ),
    ),
  );
}
