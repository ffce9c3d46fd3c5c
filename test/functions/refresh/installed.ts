import { type Installation, installAll } from "../../../functions/catalog/catalog.ts";
import { parseMcpServers } from "../../../functions/contract/mcp-server.ts";
import { type Files, load, pinnedRoot } from "../repository/skills-on-disk.ts";

/** What is deployed, with MCP servers of these names and skills of these files. */
export function installedWith(
  servers: readonly string[],
  { approvals = [], files }: { readonly approvals?: readonly string[]; readonly files?: Files } = {},
): Installation {
  const mcpServers = Object.fromEntries(servers.map((name) => [name, { url: `https://${name}.example/mcp` }]));
  const parsed = parseMcpServers({ mcpServers }, { reserved: [] });
  if (!parsed.ok) throw parsed.fault;
  const repositories = files === undefined ? [] : load(pinnedRoot(files));
  return installAll({ repositories, approvals, servers: parsed.value, log: () => undefined });
}
