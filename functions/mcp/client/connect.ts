import { Client, type Transport } from "@modelcontextprotocol/client";
import type { Fault } from "../../contract/fault.ts";
import type { MCPServerConfig } from "../../contract/mcp-server.ts";
import { PRODUCT_VERSION } from "../../contract/product.ts";
import { explainFailure, httpStatusOf, isUnauthorized } from "./explain-failure.ts";
import { openTransport, type TransportOptions } from "./open-transport.ts";
import { withRawResults } from "./raw-results.ts";
import { createWire, type Wire } from "./wire.ts";

/**
 * One connection with one server, whichever of the two protocols it speaks. Nothing is offered to the server: no roots,
 * no sampling, no elicitation. What the SDK would do beside (check results against output schemas, keep lists, list
 * again by itself) is off: it would refuse what the product judges itself, or hand over a list that is stale.
 */

export type ConnectOptions = Omit<TransportOptions, "watch"> & {
  /** Ends the attempt. */
  readonly signal: AbortSignal;
  /** Milliseconds after which the attempt has failed in any case. */
  readonly timeoutMs: number;
  /** Longest answer in bytes; {@link Connection.allow} raises it. */
  readonly maxBytes: number;
  readonly onNotification?: ((method: string, params: Readonly<Record<string, unknown>>) => void) | undefined;
};

export type Connection = Pick<Wire, "bytesRead" | "trouble" | "allow"> & {
  readonly client: Client;
  /** What went wrong, as `SERVER_UNAVAILABLE`; `expired` when the time was up. */
  explain(error: unknown, options: { readonly expired: boolean }): Fault;
  /** The server has forgotten the session, as it may: a new one can be opened (MCP 2025-11-25, Streamable HTTP). */
  hasForgotten(error: unknown): boolean;
  /** Takes leave, and ends the process of a server that is one. Never rejects. */
  close(): Promise<void>;
};

/** `unauthorized` when it was the credential that the server refused. */
export type Connected =
  | { readonly ok: true; readonly value: Connection }
  | { readonly ok: false; readonly fault: Fault; readonly unauthorized: boolean };

/** Never rejects: `SERVER_UNAVAILABLE` says why there is no connection. */
export async function connect(options: ConnectOptions): Promise<Connected> {
  const first = await attempt(options, { probe: true });
  // Servers of some older SDKs end at any request before `initialize`, the question for the protocol included.
  return first.ok || !first.endedByProbe ? first : attempt(options, { probe: false });
}

type Attempt =
  | Extract<Connected, { ok: true }>
  | (Extract<Connected, { ok: false }> & { readonly endedByProbe: boolean });

async function attempt(options: ConnectOptions, { probe }: { readonly probe: boolean }): Promise<Attempt> {
  const { config, signal } = options;
  const { connection, transport } = await prepare(options);
  try {
    await negotiate(connection.client, transport, { ...options, probe });
    return { ok: true, value: connection };
  } catch (error) {
    await transport.close();
    const fault = connection.explain(error, { expired: signal.aborted });
    const ended = config.transport === "stdio" && connection.trouble()?.tooLarge === false;
    const endedByProbe = ended && probe && !signal.aborted;
    return { ok: false, fault, unauthorized: isUnauthorized(error), endedByProbe };
  }
}

type Prepared = { readonly connection: Connection; readonly transport: Transport };

/** All of a connection but that it is there. */
async function prepare(options: ConnectOptions): Promise<Prepared> {
  const { config, secrets, timeoutMs, onNotification } = options;
  const wire = createWire(options.maxBytes);
  const { transport, lastWords, takeLeave } = await openTransport({ ...options, watch: wire.watch });
  const client = createClient(probeTimeoutMs(config, timeoutMs));
  client.fallbackNotificationHandler = async ({ method, params = {} }) => onNotification?.(method, params);
  const connection: Connection = {
    ...wire,
    client,
    explain: (error, { expired }) => {
      const { redact } = secrets;
      return explainFailure(error, { config, redact, expired, trouble: wire.trouble(), lastWords: lastWords() });
    },
    hasForgotten: (error) => transport.sessionId !== undefined && httpStatusOf(error) === 404,
    close: async () => {
      await takeLeave();
      await client.close().catch(() => undefined);
      await transport.close();
    },
  };
  return { connection, transport };
}

type NegotiateOptions = Pick<ConnectOptions, "signal" | "timeoutMs"> & { readonly probe: boolean };

/** Throws what the SDK throws. Its question for the protocol takes no signal, so the wire is cut under it. */
async function negotiate(client: Client, transport: Transport, options: NegotiateOptions): Promise<void> {
  const { signal, timeoutMs, probe } = options;
  const stop = () => void transport.close();
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    const timing = { signal, timeout: timeoutMs };
    await client.connect(withRawResults(transport), probe ? timing : { ...timing, prior: { kind: "legacy" } });
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function createClient(probeMs: number): Client {
  return new Client(
    { name: "skillbroker", version: PRODUCT_VERSION },
    {
      capabilities: {},
      versionNegotiation: { mode: "auto", probe: { timeoutMs: probeMs } },
      inputRequired: { autoFulfill: false },
    },
  );
}

/** Silence over a pipe is the way of some older servers, and half of the time is left for asking them in their way. */
function probeTimeoutMs(config: MCPServerConfig, timeoutMs: number): number {
  return config.transport === "stdio" ? timeoutMs / 2 : timeoutMs;
}
