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

export type LentTool = { readonly ref: ToolRef; readonly definition: OfferedTool };

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

/** Every declared server, by name. What was published about others, or under another configuration, is passed over. */
export function toLendingServers(
  declared: readonly MCPServerConfig[],
  record: Pick<CatalogRecord, "servers"> | undefined,
  age: Age,
): ReadonlyMap<string, LendingServer> {
  const published = new Map(record?.servers.map((server) => [server.name, server]));
  return new Map(
    declared.map((config) => {
      const found = published.get(config.name);
      const known = found?.config === digestOfConfig(config) ? found : undefined;
      return [config.name, toLendingServer(config.name, known, age)];
    }),
  );
}

function toLendingServer(name: string, record: ServerRecord | undefined, age: Age): LendingServer {
  const lent = (record?.tools ?? []).map((definition) => ({ ref: mcpRef(name, definition), definition }));
  const tools = new Map(lent.map((tool) => [tool.definition.name, tool]));
  return { name, record, tools, readable: isReadable(record, age) };
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
    [...tools.values()].map((tool) => ({
      spec: toSpec(name, tool),
      binding: { server: name, tool: tool.definition.name },
    })),
  );
}

function toSpec(origin: string, { ref, definition }: LentTool): ToolSpec {
  const { name, description = "", inputSchema, outputSchema } = definition;
  const digest = digestOfDefinition(definition);
  const version = digest.slice(0, ref.length - ref.lastIndexOf("@") - 1);
  return {
    ref,
    id: `${origin}/${name}`,
    version,
    kind: "tool",
    description,
    inputSchema,
    outputSchema,
    origin,
    digest,
  };
}

/** Installed tools by their exact ref; tools of servers by `server/tool`, with or without the digits of a definition. */
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
  const offered = digitsOf(lent.ref);
  if (digits !== undefined && digits !== offered) return { state: "changed", approved: digits, offered };
  return { state: "present", ref: lent.ref };
}

function digitsOf(ref: ToolRef): string {
  return ref.slice(ref.lastIndexOf("@") + 1);
}

export function toServerHealth({ name, record, tools }: LendingServer, now: number): ServerHealth {
  const listedAt = record?.listed_at ?? null;
  return {
    name,
    status: record?.status ?? "unlisted",
    listed_at: listedAt,
    age_seconds: listedAt === null ? null : Math.max(0, Math.floor((now - Date.parse(listedAt)) / 1000)),
    tools: tools.size,
    quarantined: record?.quarantined ?? [],
    failures: record?.failures ?? 0,
    reason: record?.reason ?? null,
  };
}
