import { once } from "node:events";
import { StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import type { MCPServerConfig } from "../../contract/mcp-server.ts";
import { createBoundedFetch, type StreamWatch } from "./bounded-fetch.ts";
import { ProcessTransport } from "./process-transport.ts";
import type { ServerSecrets } from "./resolve-secrets.ts";
import type { WireWatch } from "./wire.ts";

export type TransportOptions = {
  readonly config: MCPServerConfig;
  readonly secrets: ServerSecrets;
  readonly watch: WireWatch;
  /** Milliseconds that a process, or a farewell, may take at the end; asked then. */
  readonly graceMs: () => number;
  readonly stream: StreamWatch | undefined;
};

export type OpenTransport = {
  readonly transport: Transport;
  /** What a process wrote on standard error at last. */
  lastWords(): string;
  /** Before closing: a server that keeps a session would keep it for ever. Never rejects. */
  takeLeave(): Promise<void>;
};

export async function openTransport(options: TransportOptions): Promise<OpenTransport> {
  const { config } = options;
  return config.transport === "http" ? openHttp(config, options) : openProcess(config, options);
}

type HttpConfig = Extract<MCPServerConfig, { transport: "http" }>;
type StdioConfig = Extract<MCPServerConfig, { transport: "stdio" }>;

function openHttp({ url }: HttpConfig, { secrets, watch, stream, graceMs }: TransportOptions): OpenTransport {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: [...secrets.values].map(([name, value]) => [name, value]) },
    fetch: createBoundedFetch(watch, stream),
    // A stream that ended is opened anew by whoever needs it: the pace of retries would be the server's to choose.
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1_000,
      maxReconnectionDelay: 1_000,
      reconnectionDelayGrowFactor: 1,
    },
  });
  return {
    transport,
    lastWords: () => "",
    takeLeave: async () => {
      const milliseconds = Math.floor(graceMs());
      if (transport.sessionId === undefined || milliseconds <= 0) return;
      const left = transport.terminateSession().catch(() => undefined);
      await Promise.race([left, once(AbortSignal.timeout(milliseconds), "abort")]);
    },
  };
}

async function openProcess(config: StdioConfig, options: TransportOptions): Promise<OpenTransport> {
  const { secrets, watch, graceMs } = options;
  const { getDefaultEnvironment } = await import("@modelcontextprotocol/client/stdio");
  const env = { ...getDefaultEnvironment(), ...Object.fromEntries(secrets.values) };
  const { command, args, cwd } = config;
  const transport = new ProcessTransport({ command, args, cwd, env, watch, graceMs });
  return { transport, lastWords: () => transport.lastWords, takeLeave: async () => undefined };
}
