import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryProject } from "../../kit/local-service.ts";

/** A project whose `mcp.json` declares these servers. */
export function projectWithServers(
  servers: Readonly<Record<string, unknown>>,
  context: Readonly<Record<string, unknown>> = {},
): string {
  const cwd = temporaryProject({ tools: ["local"], ...context });
  writeFileSync(join(cwd, "mcp.json"), JSON.stringify({ mcpServers: servers }));
  return cwd;
}
