import type { OperatorPolicy } from "../broker/operator-policy.ts";
import type { RegisteredTool } from "../broker/tool-registry.ts";
import { digestOfConfig, type MCPServerConfig } from "../contract/mcp-server.ts";
import {
  digestOfDefinition,
  type McpToolName,
  mcpRef,
  type OfferedTool,
  parseMcpToolName,
} from "../contract/offered-tool.ts";
import type { CatalogRecord, ServerHealth, ServerRecord } from "../contract/refresh.ts";
import { parseToolRef, type ToolRef, type ToolSpec } from "../contract/tool.ts";
import type { ToolLookup, ToolState } from "./skill-registry.ts";

/** What the declared MCP servers lend, by the lists that were published last. */

export type LentTool = {
  readonly ref: ToolRef;
  readonly definition: OfferedTool;
  /**
   * Digest of the definition that was approved under this very ref, when it is another one. Two definitions can be made
   * to share the digits of a ref; the second is as unapproved as any other.
   */
  readonly standsInFor?: string | undefined;
};

export type LendingServer = {
  readonly name: string;
  /** Undefined when nothing was published about this server under its present configuration. */
  readonly record: ServerRecord | undefined;
  /** By the server's own name of the tool. */
  readonly tools: ReadonlyMap<string, LentTool>;
  /** Whether the list may be gone by: its last fetching succeeded, and it is not too old. */
  readonly readable: boolean;
};

export type Age = {
  /** Epoch ms. */
  readonly now: number;
  readonly maxListAgeMs: number;
};

export type LendingSource = {
  readonly declared: readonly MCPServerConfig[];
  readonly record: Pick<CatalogRecord, "servers"> | undefined;
  readonly policy: Pick<OperatorPolicy, "digests">;
};

/** Every declared server, by name. What was published about others, or under another configuration, is passed over. */
export function toLendingServers(source: LendingSource, age: Age): ReadonlyMap<string, LendingServer> {
  const published = new Map(source.record?.servers.map((server) => [server.name, server]));
  return new Map(
    source.declared.map((config) => {
      const found = published.get(config.name);
      const record = found?.config === digestOfConfig(config) ? found : undefined;
      const tools = toLent(config.name, record, source.policy);
      return [config.name, { name: config.name, record, tools, readable: isReadable(record, age) }];
    }),
  );
}

function toLent(
  server: string,
  record: ServerRecord | undefined,
  { digests }: LendingSource["policy"],
): ReadonlyMap<string, LentTool> {
  const kept = new Map(
    record?.approved.map((definition) => [mcpRef(server, definition), digestOfDefinition(definition)]),
  );
  const lent = (record?.tools ?? []).map((definition): LentTool => {
    const ref = mcpRef(server, definition);
    const approved = digests.get(ref) ?? kept.get(ref);
    const standsInFor = approved === digestOfDefinition(definition) ? undefined : approved;
    return { ref, definition, standsInFor };
  });
  return new Map(lent.map((tool) => [tool.definition.name, tool]));
}

function isReadable(record: ServerRecord | undefined, { now, maxListAgeMs }: Age): boolean {
  if (record?.status !== "fresh" || record.listed_at === null) return false;
  return now - Date.parse(record.listed_at) <= maxListAgeMs;
}

/** When the first list that is readable at `now` is too old, epoch ms; infinity when none ever is. */
export function readableUntil(servers: ReadonlyMap<string, LendingServer>, { maxListAgeMs }: Age): number {
  const ends = [...servers.values()].flatMap(({ readable, record }) =>
    readable && record?.listed_at ? [Date.parse(record.listed_at) + maxListAgeMs] : [],
  );
  return Math.min(...ends, Number.POSITIVE_INFINITY);
}

export function toLentTools(servers: ReadonlyMap<string, LendingServer>): readonly RegisteredTool[] {
  return [...servers.values()].flatMap(({ name, tools }) =>
    [...tools.values()]
      .filter(({ standsInFor }) => standsInFor === undefined)
      .map((tool) => ({ spec: toSpec(name, tool), binding: { server: name, tool: tool.definition.name } })),
  );
}

function toSpec(origin: string, { ref, definition }: LentTool): ToolSpec {
  const { name, description = "", inputSchema, outputSchema } = definition;
  const id = `${origin}/${name}`;
  const digest = digestOfDefinition(definition);
  return { ref, id, version: digitsOf(ref), kind: "tool", description, inputSchema, outputSchema, origin, digest };
}

/**
 * Installed tools by their exact ref; tools of servers by `server/tool`, with or without the digits of a definition.
 */
export function createLookup(
  installed: ReadonlyMap<ToolRef, RegisteredTool>,
  servers: ReadonlyMap<string, LendingServer>,
): ToolLookup {
  return (text) => {
    const name = parseMcpToolName(text);
    if (name !== undefined) return lookUpLent(name, servers);
    const ref = parseToolRef(text);
    return { state: ref !== undefined && installed.has(ref) ? "present" : "absent" };
  };
}

function lookUpLent(
  { server: serverName, tool, digits }: McpToolName,
  servers: ReadonlyMap<string, LendingServer>,
): ToolState {
  const server = servers.get(serverName);
  if (server === undefined) return { state: "absent" };
  if (!server.readable) return { state: "unknown" };
  const lent = server.tools.get(tool);
  if (lent === undefined) return { state: "absent" };
  if (lent.standsInFor !== undefined) {
    return { state: "changed", approved: lent.standsInFor, offered: digestOfDefinition(lent.definition) };
  }
  const offered = digitsOf(lent.ref);
  if (digits !== undefined && digits !== offered) return { state: "changed", approved: digits, offered };
  return { state: "present", ref: lent.ref };
}

function digitsOf(ref: ToolRef): string {
  return ref.slice(ref.lastIndexOf("@") + 1);
}

/** A list that is too old to be gone by is as good as one that could not be fetched, and is told as such. */
export function toServerHealth({ name, record, tools, readable }: LendingServer, now: number): ServerHealth {
  const listedAt = record?.listed_at ?? null;
  const aged = record?.status === "fresh" && !readable;
  return {
    name,
    status: aged ? "stale" : (record?.status ?? "unlisted"),
    listed_at: listedAt,
    age_seconds: listedAt === null ? null : Math.max(0, Math.floor((now - Date.parse(listedAt)) / 1000)),
    tools: tools.size,
    quarantined: record?.quarantined ?? [],
    failures: record?.failures ?? 0,
    reason: aged ? "its list is older than maxListAgeSeconds allows" : (record?.reason ?? null),
  };
}
