import { Fault, type Outcome, refuse, succeed } from "../../contract/fault.ts";
import type { MCPServerConfig } from "../../contract/mcp-server.ts";
import type { Clock, ReadSecret, ToolListing } from "../../contract/ports.ts";
import { quoted } from "../../contract/printable.ts";
import { type Connection, connect } from "./connect.ts";
import { type Deadline, unlessAborted } from "./deadline.ts";
import { isUnauthorized } from "./explain-failure.ts";
import { type FetchPage, type ListLimits, listTools } from "./list-tools.ts";
import { RawResult, rawOf } from "./raw-results.ts";
import { renewSecrets, resolveSecrets, type ServerSecrets } from "./resolve-secrets.ts";

/** A connection with a server, and the list that the server gave over it. */

/** What every connection is opened with. */
export type Peers = {
  readonly servers: readonly MCPServerConfig[];
  readonly readSecret: ReadSecret;
  readonly clock: Clock;
  readonly limits: ListLimits;
  /** Most files that one answer may hold. */
  readonly maxFiles: number;
  /** A signal that aborts after so many milliseconds, which are at most 2,147,483,647. */
  readonly abortAfter: (milliseconds: number) => AbortSignal;
};

export type Listed = {
  readonly connection: Connection;
  readonly listing: ToolListing;
  readonly redact: ServerSecrets["redact"];
};

/** What a request may take beyond its deadline: the signal ends it, and must not find that the SDK was first. */
const SLACK_MS = 1_000;

export type OpenOptions = {
  readonly deadline: Deadline;
  /** Milliseconds for a farewell, or for a process to end by itself; asked then. */
  readonly graceMs: () => number;
  /** True when the server has refused the secrets as they were read last. */
  readonly freshSecrets?: boolean | undefined;
};

/** Throws for a server that is not declared, which no configuration can have asked for. */
export function findServer(name: string, { servers }: Peers): MCPServerConfig {
  const server = servers.find((each) => each.name === name);
  if (server === undefined) throw new Error(`no MCP server ${quoted(name)} is declared`);
  return server;
}

/** `SERVER_UNAVAILABLE`, with the name of the server, when there is no connection or no list. */
export async function openListed(
  config: MCPServerConfig,
  peers: Peers,
  options: OpenOptions,
): Promise<Outcome<Listed>> {
  const { signal } = options.deadline;
  const reading = resolveSecrets(config, peers.readSecret, { fresh: options.freshSecrets });
  const secrets = await unlessAborted(reading, signal);
  if (secrets === undefined) return ofServer(config, refuse("SERVER_UNAVAILABLE", "its secrets were not read in time"));
  if (!secrets.ok) return ofServer(config, secrets);
  const opening = { ...options, config, peers, secrets: secrets.value };
  const first = await attempt(opening);
  const next = first.ok ? undefined : await nextOpening(first, opening);
  // Once, for whatever reason: a server may forget every session and refuse every credential.
  return ofServer(config, next === undefined ? first : await attempt(next));
}

type Opening = OpenOptions & {
  readonly config: MCPServerConfig;
  readonly peers: Peers;
  readonly secrets: ServerSecrets;
};

/**
 * What was lost and may be had anew: a server may forget a session at any time, and a credential may have been rotated.
 */
type Lost = "session" | "credential" | undefined;

type Failed = { readonly ok: false; readonly fault: Fault; readonly lost: Lost };
type Attempt = { readonly ok: true; readonly value: Listed } | Failed;

/** What is to be tried after a failure; undefined when it would come to the same. */
async function nextOpening({ lost }: Failed, opening: Opening): Promise<Opening | undefined> {
  if (lost === undefined) return undefined;
  if (lost === "session") return opening;
  const { config, peers, secrets, deadline } = opening;
  const renewed = await unlessAborted(renewSecrets(config, peers.readSecret, secrets), deadline.signal);
  return renewed === undefined ? undefined : { ...opening, secrets: renewed };
}

async function attempt({ config, peers, deadline, graceMs, secrets }: Opening): Promise<Attempt> {
  const { limits } = peers;
  const { redact } = secrets;
  const connected = await connect({
    config,
    secrets,
    signal: deadline.signal,
    timeoutMs: deadline.remainingMs() + SLACK_MS,
    maxBytes: limits.maxBytes,
    graceMs,
    stream: undefined,
  });
  if (!connected.ok) return { ...connected, lost: connected.unauthorized ? "credential" : undefined };
  const connection = connected.value;
  let lost: Lost;
  const fetchPage: FetchPage = async (cursor) => {
    const before = connection.bytesRead();
    try {
      const request = { method: "tools/list", ...(cursor === undefined ? {} : { params: { cursor } }) };
      const result = await connection.client.request(request, RawResult, requestOptions(deadline));
      return succeed({ result: rawOf(result), bytes: connection.bytesRead() - before });
    } catch (error) {
      lost = whatWasLost(error, connection);
      return { ok: false, fault: connection.explain(error, { expired: deadline.signal.aborted }) };
    }
  };
  const listing = await listTools(fetchPage, {
    limits,
    redact,
    mirrorsArguments: mirrorsArguments(connection, config),
  });
  if (listing.ok) return { ok: true, value: { connection, redact, listing: listing.value } };
  await connection.close();
  return { ...listing, lost };
}

/** Arguments are mirrored into headers where there are headers, since the stateless revision. */
function mirrorsArguments({ client }: Connection, { transport }: MCPServerConfig): boolean {
  return transport === "http" && client.getProtocolEra() === "modern";
}

function whatWasLost(error: unknown, connection: Connection): Lost {
  if (connection.hasForgotten(error)) return "session";
  return isUnauthorized(error) ? "credential" : undefined;
}

export function requestOptions({ signal, remainingMs }: Deadline): { signal: AbortSignal; timeout: number } {
  return { signal, timeout: remainingMs() + SLACK_MS };
}

/** A server that fails is named. */
export function ofServer<T>({ name }: MCPServerConfig, outcome: Outcome<T>): Outcome<T> {
  if (outcome.ok || outcome.fault.code !== "SERVER_UNAVAILABLE") return outcome;
  const { code, message, cause } = outcome.fault;
  return { ok: false, fault: new Fault(code, `server ${quoted(name)}: ${message}`, { cause }) };
}
