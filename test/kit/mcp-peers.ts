import { onTestFinished } from "vitest";
import { type Outcome, refuse, succeed } from "../../functions/contract/fault.ts";
import type { MCPServerConfig } from "../../functions/contract/mcp-server.ts";
import type { ReadSecret, ToolSource } from "../../functions/contract/ports.ts";
import { createMcpToolSource, type McpToolSourceOptions } from "../../functions/mcp/client/tool-source.ts";
import { type Script, type ScriptOptions, type ScriptServer, startScriptServer } from "./mcp-script-server.ts";
import { type McpServerOptions, type McpTestServer, type ServedTool, startMcpServer } from "./mcp-server.ts";

/** Servers that end with the test, and what it takes to speak with them. */

export function aTool(name: string, changes: Partial<ServedTool> = {}): ServedTool {
  return { name, description: "d", inputSchema: { type: "object" }, ...changes };
}

export async function serveMcp(options: McpServerOptions): Promise<McpTestServer> {
  const server = await startMcpServer(options);
  onTestFinished(() => server.close());
  return server;
}

export async function serveScript(options: ScriptOptions, script: Script): Promise<ScriptServer> {
  const server = await startScriptServer(script, options);
  onTestFinished(() => server.close());
  return server;
}

/** The server `s1` at this address. */
export function overHttp(url: string, headers: Readonly<Record<string, string>> = {}): MCPServerConfig {
  return { name: "s1", transport: "http", url, headers: new Map(Object.entries(headers)) };
}

/** The server `s1` as a process; `told` is what `mcp-process-server.mjs` takes. */
export function overStdio(
  told: object,
  env: Readonly<Record<string, string>> = {},
): Extract<MCPServerConfig, { transport: "stdio" }> {
  const program = `${import.meta.dirname}/mcp-process-server.mjs`;
  const args = [program, JSON.stringify(told)];
  return { name: "s1", transport: "stdio", command: process.execPath, args, env: new Map(Object.entries(env)) };
}

/** How `mcp.json` names a secret of the environment. */
export function secretNamed(name: string): string {
  return `\${env:${name}}`;
}

export function secretsOf(values: Readonly<Record<string, string>>): ReadSecret {
  return async ({ name }) => {
    const value = values[name];
    return value === undefined
      ? refuse("SERVER_UNAVAILABLE", `the secret ${secretNamed(name)} is not set`)
      : succeed(value);
  };
}

/** A secret that was replaced where it is stored, and of which the old value is still remembered. */
export function rotated(remembered: string, stored: string): ReadSecret {
  return async (_, { fresh = false } = {}) => succeed(fresh ? stored : remembered);
}

export function sourceOf(config: MCPServerConfig, options: Partial<McpToolSourceOptions> = {}): ToolSource {
  return createMcpToolSource({ servers: [config], readSecret: secretsOf({}), clock: Date.now, ...options });
}

/** A deadline that no test is meant to meet. */
export function ample(): { readonly deadline: number } {
  return { deadline: Date.now() + 30_000 };
}

/** Deadlines that are met when the test says so. */
export function manualDeadline() {
  const controller = new AbortController();
  return { abortAfter: () => controller.signal, expire: () => controller.abort() };
}

export function messageOf(outcome: Outcome<unknown> | undefined): string {
  return outcome === undefined || outcome.ok ? "no fault" : outcome.fault.message;
}
