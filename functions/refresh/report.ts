import type { Catalog } from "../catalog/catalog.ts";
import { toServerHealth } from "../catalog/lent-tools.ts";
import { SkillRefreshResult } from "../catalog/refresh-result.ts";
import type { CatalogChanges, RefreshCause, RefreshReport } from "../contract/refresh.ts";

/** What a caller gets to see of a refresh. */

const NO_CHANGES: CatalogChanges = { added: [], removed: [], changed: [] };
const DEPLOYED: RefreshCause = { type: "deploy", servers: [] };

/** `catalog` is made of the record told of; before the first refresh it is the deployed one. */
export function toRefreshReport(
  catalog: Catalog,
  { now, dryRun }: { readonly now: number; readonly dryRun: boolean },
): RefreshReport {
  const { record, generation, servers, lastRefresh } = catalog;
  const result =
    record === undefined
      ? lastRefresh
      : new SkillRefreshResult({ ...record.result, failed: new Map(Object.entries(record.result.failed)) });
  return {
    generation,
    dry_run: dryRun,
    refreshed_at: record?.refreshed_at ?? null,
    cause: record?.cause ?? DEPLOYED,
    summary: result.toSummary(),
    refreshed: [...result.refreshed],
    failed: Object.fromEntries(result.failed),
    skipped: [...result.skipped],
    total_refreshed: result.totalRefreshed,
    total_failed: result.totalFailed,
    total_skipped: result.totalSkipped,
    changes: record?.changes ?? NO_CHANGES,
    servers: [...servers.values()].map((server) => toServerHealth(server, now)),
  };
}
