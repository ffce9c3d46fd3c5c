import * as z from "zod";
import { ServerName } from "./mcp-server.ts";
import { OfferedTool, QuarantinedTool } from "./offered-tool.ts";

/** What a refresh publishes, and what the API says about it. */

export const REFRESH_CAUSES = ["deploy", "notification", "schedule", "request", "watch"] as const;

export const RefreshCause = z
  .object({
    type: z.enum(REFRESH_CAUSES),
    servers: z.array(z.string()).meta({ description: "whose lists were fetched" }),
  })
  .meta({ id: "RefreshCause" });
export type RefreshCause = z.infer<typeof RefreshCause>;

/** By exact ref, compared with the generation before. */
export const CatalogChanges = z
  .object({
    added: z.array(z.string()),
    removed: z.array(z.string()),
    changed: z.array(z.object({ tool: z.string(), from: z.string(), to: z.string() })),
  })
  .meta({ id: "CatalogChanges", description: "tools of MCP servers, compared with the generation before" });
export type CatalogChanges = z.infer<typeof CatalogChanges>;

export const RefreshResult = z
  .object({
    refreshed: z.array(z.string()),
    failed: z.record(z.string(), z.string()).meta({ description: "skill -> why its tool set is not whole" }),
    skipped: z.array(z.string()),
  })
  .meta({ id: "RefreshResult" });
export type RefreshResult = z.infer<typeof RefreshResult>;

const Instant = z.iso.datetime();

/**
 * What is known of one server. `fresh`: the last attempt gave the list. `stale`: it did not, the last good list stays.
 * `unlisted`: no attempt under this configuration has given one yet.
 */
export const SERVER_STATUSES = ["fresh", "stale", "unlisted"] as const;

export const ServerRecord = z.object({
  name: ServerName,
  /** Of the configuration under which the list was fetched. */
  config: z.string(),
  status: z.enum(SERVER_STATUSES),
  /** When the fetching of the last good list began. */
  listed_at: Instant.nullable(),
  attempted_at: Instant,
  /** Attempts without a list since the last good one. */
  failures: z.int().min(0),
  reason: z.string().nullable(),
  /** How long the server says that the list is good; null when it says nothing. */
  ttl_ms: z.int().min(0).nullable(),
  /** Generation that this entry was published with: who fetched a list before it was must fetch anew. */
  generation: z.int().min(1),
  /** Epoch ms on the queue's clock: every notification that was in the queue before is answered by this entry. */
  covered_until: z.int().min(0),
  tools: z.array(OfferedTool),
  quarantined: z.array(QuarantinedTool),
  /** Definitions of approved refs as they were last offered, so that a change can be shown against them. */
  approved: z.array(OfferedTool),
});
export type ServerRecord = z.infer<typeof ServerRecord>;

/** The published catalog, whole: it is replaced by compare-and-swap and never changed in place. */
export const CatalogRecord = z.object({
  version: z.literal(1),
  generation: z.int().min(1),
  refreshed_at: Instant,
  cause: RefreshCause,
  changes: CatalogChanges,
  result: RefreshResult,
  servers: z.array(ServerRecord),
  /** Exact refs that each skill serves. */
  skills: z.array(z.object({ name: z.string(), tools: z.array(z.string()) })),
});
export type CatalogRecord = z.infer<typeof CatalogRecord>;

export const ServerHealth = z
  .object({
    name: z.string(),
    status: z.enum(SERVER_STATUSES),
    listed_at: z.string().nullable(),
    age_seconds: z.int().nullable().meta({ description: "age of the list that is in force" }),
    tools: z.int(),
    quarantined: z.array(QuarantinedTool),
    failures: z.int().meta({ description: "attempts without a list since the last good one" }),
    reason: z.string().nullable(),
  })
  .meta({ id: "ServerHealth" });
export type ServerHealth = z.infer<typeof ServerHealth>;

export const RefreshReport = z
  .object({
    generation: z.int().meta({ description: "of the catalog told of; with dry_run the one that would be published" }),
    dry_run: z.boolean(),
    refreshed_at: Instant.nullable(),
    cause: RefreshCause,
    summary: z.string().meta({ examples: ["refreshed: 3, failed: 1, skipped: 0"] }),
    ...RefreshResult.shape,
    total_refreshed: z.int(),
    total_failed: z.int(),
    total_skipped: z.int(),
    changes: CatalogChanges,
    servers: z.array(ServerHealth),
  })
  .meta({ id: "RefreshReport" });
export type RefreshReport = z.infer<typeof RefreshReport>;

export const RefreshRequest = z
  .strictObject({
    servers: z
      .array(ServerName)
      .min(1, "at least one, or leave it out for all")
      .max(1_000)
      .optional()
      .meta({ description: "whose lists are fetched; all when left out" }),
    dry_run: z.boolean().default(false).meta({ description: "compute and answer, publish nothing" }),
    source: z.literal("watch").optional().meta({ description: "that a server told of a change, to whoever asks" }),
  })
  .meta({ id: "RefreshRequest" });
export type RefreshRequest = z.infer<typeof RefreshRequest>;
