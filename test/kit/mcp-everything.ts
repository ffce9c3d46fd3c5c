import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import type { MCPServerConfig } from "../../functions/contract/mcp-server.ts";

/**
 * The reference server of the protocol's own project, which shows every feature: a peer that nobody here has written.
 */

const PROGRAM = join(import.meta.dirname, "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js");

/** As a process of its own, which whoever connects starts. */
export function everythingOverStdio(env: Readonly<Record<string, string>> = {}): MCPServerConfig {
  return {
    name: "everything",
    transport: "stdio",
    command: process.execPath,
    args: [PROGRAM, "stdio"],
    env: new Map(Object.entries(env)),
  };
}

/** Over HTTP on a free port. */
export async function startEverything(): Promise<{ readonly config: MCPServerConfig; close(): Promise<void> }> {
  const port = await freePort();
  const child = spawn(process.execPath, [PROGRAM, "streamableHttp"], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(child, "exit");
  await Promise.race([untilListening(child.stderr), ended.then(() => Promise.reject(new Error("it did not start")))]);
  const url = `http://127.0.0.1:${port}/mcp`;
  return {
    config: { name: "everything", transport: "http", url, headers: new Map() },
    close: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function untilListening(output: NodeJS.ReadableStream): Promise<void> {
  let said = "";
  for await (const chunk of output) {
    said += String(chunk);
    if (said.includes("listening")) return;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
