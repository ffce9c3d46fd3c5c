import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/client";
import { type Fault, type Outcome, refuse, succeed } from "../../contract/fault.ts";
import type { MCPServerConfig } from "../../contract/mcp-server.ts";
import { LIST_CHANGED } from "../../contract/notification.ts";
import type { ReadSecret, Timer } from "../../contract/ports.ts";
import type { StreamWatch } from "./bounded-fetch.ts";
import { type Connection, connect } from "./connect.ts";
import { unlessAborted } from "./deadline.ts";
import { httpStatusOf } from "./explain-failure.ts";
import { isAnswer } from "./raw-results.ts";
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
  // Such a connection is made seldom, and one that ended may have ended because a secret was rotated.
  const secrets = await unlessAborted(resolveSecrets(config, readSecret, { fresh: true }), signal);
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
  const notifies = await subscribe(connection, { ...options, session, end });
  if (!notifies.ok) {
    await connection.close();
    return notifies;
  }
  return succeed({
    notifies: notifies.value,
    ended,
    check: () => check(connection, { timer, milliseconds: limits.checkMs }),
    close: () => connection.close(),
  });
}

type SubscribeOptions = ListenOptions & {
  readonly session: SessionStream;
  /** To be called with the reason once nothing more will be heard. */
  readonly end: (reason: string) => void;
};

/** False when the server has nothing to announce, or does not grant what is asked for. */
async function subscribe(connection: Connection, options: SubscribeOptions): Promise<Outcome<boolean>> {
  const { config, session, end } = options;
  const { client } = connection;
  client.onclose = () => end(connection.trouble()?.message ?? "ended the connection");
  // A process may have ended before anyone could be told.
  if (client.transport === undefined) client.onclose();
  const announces = client.getServerCapabilities()?.tools?.listChanged === true;
  if (client.getProtocolEra() === "modern") return announces ? openSubscription(connection, options) : succeed(false);
  const opened = config.transport === "http" ? await session.opened(options) : true;
  return succeed(announces && opened);
}

async function openSubscription(connection: Connection, options: SubscribeOptions): Promise<Outcome<boolean>> {
  const { signal, end, limits } = options;
  try {
    const timing = { signal, timeout: limits.connectMs };
    const { closed, honoredFilter } = await connection.client.listen({ toolsListChanged: true }, timing);
    void closed.then(() => end(connection.trouble()?.message ?? "ended the stream of notifications"));
    return succeed(honoredFilter.toolsListChanged === true);
  } catch (error) {
    if (isUnknownMethod(error)) return succeed(false);
    return { ok: false, fault: connection.explain(error, { expired: signal.aborted }) };
  }
}

/** Some servers announce by default what they then do not serve; where there is no stream, an HTTP status says so. */
function isUnknownMethod(error: unknown): boolean {
  if (ProtocolError.isInstance(error)) return error.code === ProtocolErrorCode.MethodNotFound;
  return [404, 405, 501].includes(httpStatusOf(error) ?? 0);
}

type SessionStream = {
  readonly watch: StreamWatch;
  /** False when the server has no such stream; true when it has not opened in its time, because it still may. */
  opened(options: Pick<ListenOptions, "timer" | "signal" | "limits">): Promise<boolean>;
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
    opened: async ({ timer, signal, limits }) => {
      const { cancel } = timer(() => {
        isLate = true;
        resolve(true);
      }, limits.streamMs);
      const opened = await unlessAborted(promise, signal);
      cancel();
      return opened ?? true;
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
    return isAnswer(error) ? undefined : explain(error, { expired: limit.signal.aborted });
  } finally {
    cancel();
  }
}
