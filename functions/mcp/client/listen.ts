import { ProtocolError } from "@modelcontextprotocol/client";
import { type Fault, type Outcome, refuse, succeed } from "../../contract/fault.ts";
import type { MCPServerConfig } from "../../contract/mcp-server.ts";
import { LIST_CHANGED } from "../../contract/notification.ts";
import type { ReadSecret, Timer } from "../../contract/ports.ts";
import type { StreamWatch } from "./bounded-fetch.ts";
import { type Connection, connect } from "./connect.ts";
import { unlessAborted } from "./deadline.ts";
import { STREAM_ENDED } from "./raw-results.ts";
import { resolveSecrets } from "./resolve-secrets.ts";

/**
 * A connection over which a server says that its list has changed: on a stream that was asked for (MCP 2026-07-28,
 * `subscriptions/listen`), on the session's own (the older revision over HTTP), or among its other lines (a process).
 */

export type ListenOptions = {
  readonly config: MCPServerConfig;
  readonly readSecret: ReadSecret;
  readonly timer: Timer;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
  readonly limits: ListenLimits;
  readonly onNotification: (method: string, params: Readonly<Record<string, unknown>>) => void;
};

export type ListenLimits = {
  readonly connectMs: number;
  /** How long the stream of a session may take to open; some servers open it with the first thing that they say. */
  readonly streamMs: number;
  readonly checkMs: number;
  /** Bytes of one answer, or of a stream: it is opened anew then. */
  readonly maxBytes: number;
  readonly graceMs: number;
};

export type Listening = {
  /** False when the server does not say that its list has changed. */
  readonly notifies: boolean;
  /** Resolves with the reason when nothing more will be heard. */
  readonly ended: Promise<string>;
  /** Undefined when the server answers: a broken line may look like a silent one. */
  check(): Promise<Fault | undefined>;
  /** Never rejects. */
  close(): Promise<void>;
};

/** Never rejects: `SERVER_UNAVAILABLE` says why nothing can be heard. */
export async function listen(options: ListenOptions): Promise<Outcome<Listening>> {
  const { config, readSecret, timer, signal, limits, onNotification } = options;
  const secrets = await unlessAborted(resolveSecrets(config, readSecret), signal);
  if (secrets === undefined) return refuse("SERVER_UNAVAILABLE", "its secrets were not read in time");
  if (!secrets.ok) return secrets;
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  const session = watchSessionStream(end, () => onNotification(LIST_CHANGED, {}));
  const connected = await connect({
    config,
    signal,
    onNotification,
    secrets: secrets.value,
    timeoutMs: limits.connectMs,
    maxBytes: limits.maxBytes,
    graceMs: () => limits.graceMs,
    stream: session.watch,
  });
  if (!connected.ok) return connected;
  const connection = connected.value;
  const { client } = connection;
  client.onclose = () => end(connection.trouble()?.message ?? "ended the connection");
  // A process may have ended before anyone could be told.
  if (client.transport === undefined) client.onclose();
  const announces = client.getServerCapabilities()?.tools?.listChanged === true;
  const subscribed = await subscribe(connection, { announces, signal, end, timeoutMs: limits.connectMs });
  if (!subscribed.ok) {
    await connection.close();
    return subscribed;
  }
  const isSessionOverHttp = client.getProtocolEra() === "legacy" && config.transport === "http";
  const opened = isSessionOverHttp ? await session.settled(timer, limits.streamMs) : true;
  return succeed({
    notifies: subscribed.value && opened,
    ended,
    check: () => check(connection, { timer, milliseconds: limits.checkMs }),
    close: () => connection.close(),
  });
}

type SubscribeOptions = {
  readonly announces: boolean;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly end: (reason: string) => void;
};

/** False when the server has nothing to announce, or does not grant what is asked for. */
async function subscribe(connection: Connection, options: SubscribeOptions): Promise<Outcome<boolean>> {
  const { announces, signal, end, timeoutMs } = options;
  const { client } = connection;
  if (!announces || client.getProtocolEra() === "legacy") return succeed(announces);
  try {
    const subscription = await client.listen({ toolsListChanged: true }, { signal, timeout: timeoutMs });
    void subscription.closed.then(() => end(connection.trouble()?.message ?? "ended the stream of notifications"));
    return succeed(subscription.honoredFilter.toolsListChanged === true);
  } catch (error) {
    return { ok: false, fault: connection.explain(error, { expired: signal.aborted }) };
  }
}

type SessionStream = {
  readonly watch: StreamWatch;
  /** True unless the server has no such stream; waits no longer than this for its opening. */
  settled(timer: Timer, milliseconds: number): Promise<boolean>;
};

/** A server that has no such stream answers with 405 (MCP 2025-11-25, Streamable HTTP), or with what it has instead. */
function watchSessionStream(end: (reason: string) => void, onLateOpening: () => void): SessionStream {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let isLate = false;
  return {
    watch: {
      onOpen: () => {
        resolve(true);
        // What changed between the first look at the list and this moment was said to nobody.
        if (isLate) onLateOpening();
      },
      onEnd: (status) => {
        resolve(false);
        if (status === undefined) end("ended the stream of notifications");
        else if (status >= 500) end(`refused the stream of notifications (HTTP ${status})`);
      },
    },
    settled: async (timer, milliseconds) => {
      const { cancel } = timer(() => {
        isLate = true;
        resolve(true);
      }, milliseconds);
      const opened = await promise;
      cancel();
      return opened;
    },
  };
}

type CheckOptions = { readonly timer: Timer; readonly milliseconds: number };

async function check(
  { client, explain }: Connection,
  { timer, milliseconds }: CheckOptions,
): Promise<Fault | undefined> {
  const limit = new AbortController();
  const { cancel } = timer(() => limit.abort(), milliseconds);
  const options = { signal: limit.signal, timeout: milliseconds };
  try {
    // The stateless revision has no ping.
    await (client.getProtocolEra() === "modern" ? client.discover(options) : client.ping(options));
    return undefined;
  } catch (error) {
    const answered = ProtocolError.isInstance(error) && error.message !== STREAM_ENDED.message;
    return answered ? undefined : explain(error, { expired: limit.signal.aborted });
  } finally {
    cancel();
  }
}
