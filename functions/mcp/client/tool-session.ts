import { type ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/client";
import { type Outcome, refuse, succeed } from "../../contract/fault.ts";
import type { MCPServerConfig } from "../../contract/mcp-server.ts";
import { digestOfDefinition, type OfferedTool } from "../../contract/offered-tool.ts";
import type { RemoteAnswer, RemoteCall, ToolSession } from "../../contract/ports.ts";
import { type Deadline, startDeadline, unlessAborted } from "./deadline.ts";
import { isUnauthorized } from "./explain-failure.ts";
import { liftContent, toMessage } from "./lift-content.ts";
import { findServer, type Listed, ofServer, openListed, type Peers, requestOptions } from "./open-listed.ts";
import { isAnswer, rawOf } from "./raw-results.ts";

/**
 * Calls of one job. A server is connected with at its first call and lists its tools once, so that what is called is
 * what was approved and not what bears the same name at this moment. Nothing is ever called twice: a call that failed
 * half-way may have been made.
 */

/** What the envelope of an answer may add to it. */
const ENVELOPE_BYTES = 64 * 1024;

/** Milliseconds for a farewell, or for a process to end by itself, when the session is closed. */
const GRACE_MS = 500;

type CallLimits = { readonly deadline: number; readonly maxBytes: number };
type Opened = Promise<Outcome<Listed>>;

export function createToolSession(peers: Peers): ToolSession {
  const opened = new Map<string, Opened>();
  /** Connections that are of no use any more, and that calls may still be waiting on. */
  const retired = new Set<Opened>();
  /** Servers that refused, at a call, the credential with which they had listed their tools. */
  const refused = new Set<string>();
  const life = new AbortController();

  const open = (config: MCPServerConfig, deadline: Deadline): Opened => {
    const known = opened.get(config.name);
    if (known !== undefined) return known;
    const freshSecrets = refused.delete(config.name);
    const opening = openListed(config, peers, { deadline, graceMs: () => GRACE_MS, freshSecrets });
    opened.set(config.name, opening);
    const forget = () => retire(config.name, opening);
    opening.then((outcome) => outcome.ok || forget(), forget);
    return opening;
  };
  const retire = (name: string, connection: Opened) => {
    if (opened.get(name) === connection) opened.delete(name);
    retired.add(connection);
  };

  const call = async (remote: RemoteCall, limits: CallLimits): Promise<Outcome<RemoteAnswer>> => {
    if (life.signal.aborted) throw new Error("the session is closed");
    const config = findServer(remote.server, peers);
    const deadline = startDeadline(limits.deadline, { ...peers, givenUp: life.signal });
    if (deadline.signal.aborted) return tooLate();
    const opening = open(config, deadline);
    const listed = await unlessAborted(opening, deadline.signal);
    if (listed === undefined || (!listed.ok && deadline.signal.aborted)) return tooLate();
    if (!listed.ok) return listed;
    const approved = findApproved(remote, listed.value);
    if (!approved.ok) return approved;
    const { maxBytes } = limits;
    const made = await makeCall(remote, { peers, deadline, maxBytes, listed: listed.value, tool: approved.value });
    if (made.unauthorized === true) refused.add(config.name);
    if (made.broken) retire(config.name, opening);
    return ofServer(config, made.outcome);
  };

  return {
    call,
    close: async () => {
      life.abort();
      await Promise.allSettled([...opened.values(), ...retired].map(closeOpened));
    },
  };
}

async function closeOpened(opened: Opened): Promise<void> {
  const outcome = await opened;
  if (outcome.ok) await outcome.value.connection.close();
}

function tooLate(): Outcome<never> {
  return refuse("CALL_TIMEOUT", "the call did not end before its deadline");
}

/** Digits of a digest that are shown: as many as a ref bears. */
const SHOWN_DIGITS = 12;

/** The definition on offer, when it is the approved one to the last letter. */
function findApproved({ server, tool, digest }: RemoteCall, { listing }: Listed): Outcome<OfferedTool> {
  const offered = listing.tools.find(({ name }) => name === tool);
  if (offered === undefined) return refuseMissing(server, tool, listing);
  const now = digestOfDefinition(offered);
  if (now === digest) return succeed(offered);
  const ref = (digits: string) => `${server}/${tool}@${digits.slice(0, SHOWN_DIGITS)}`;
  return refuse(
    "TOOL_DEFINITION_CHANGED",
    `${ref(digest)} is approved, and the server now offers ${ref(now)}; compare the two and approve the one that is meant`,
  );
}

function refuseMissing(server: string, tool: string, { quarantined }: Listed["listing"]): Outcome<never> {
  const broken = quarantined.find(({ name }) => name === tool);
  if (broken === undefined) return refuse("TOOL_UNKNOWN", `server "${server}" offers no tool "${tool}"`);
  return refuse(
    "TOOL_UNAVAILABLE",
    `server "${server}" offers "${tool}" in a form that cannot be used: ${broken.reason}`,
  );
}

type CallContext = {
  readonly peers: Peers;
  readonly deadline: Deadline;
  readonly maxBytes: number;
  readonly listed: Listed;
  readonly tool: OfferedTool;
};

/** `broken` when nothing more can be asked over the connection, `unauthorized` when that is for its credential. */
type Made = {
  readonly outcome: Outcome<RemoteAnswer>;
  readonly broken: boolean;
  readonly unauthorized?: boolean;
};

async function makeCall(remote: RemoteCall, context: CallContext): Promise<Made> {
  const { peers, deadline, maxBytes, listed, tool } = context;
  const { connection, redact } = listed;
  connection.allow(maxBytes + ENVELOPE_BYTES);
  // Given for the headers that mirror arguments; without an output schema, because answers are judged by the broker.
  const toolDefinition = { name: tool.name, inputSchema: { ...tool.inputSchema, type: "object" as const } };
  try {
    const options = { ...requestOptions(deadline), toolDefinition };
    const request = { name: remote.tool, arguments: { ...remote.arguments } };
    const result = await connection.client.callTool(request, options);
    const outcome = liftContent(rawOf(result), { maxBytes, maxFiles: peers.maxFiles, redact });
    return { outcome, broken: false };
  } catch (error) {
    if (deadline.signal.aborted) return { outcome: tooLate(), broken: false };
    if (isAnswer(error)) return { outcome: toAnswer(error, listed), broken: false };
    return { outcome: toRefusal(error, { maxBytes, listed }), broken: true, unauthorized: isUnauthorized(error) };
  }
}

/** Arguments that do not please are the caller's to change; anything else the server has to answer for. */
function toAnswer(error: ProtocolError, { connection, redact }: Listed): Outcome<never> {
  if (error.code !== ProtocolErrorCode.InvalidParams) {
    return { ok: false, fault: connection.explain(error, { expired: false }) };
  }
  return refuse("TOOL_FAILED", `the tool refused the call: ${toMessage(redact(error.message))}`);
}

type RefusalContext = Pick<CallContext, "maxBytes" | "listed">;

function toRefusal(error: unknown, { maxBytes, listed: { connection } }: RefusalContext): Outcome<never> {
  if (connection.trouble()?.tooLarge === true) {
    return refuse("OUTPUT_TOO_LARGE", `the answer has more than the ${maxBytes} bytes that are allowed`);
  }
  return { ok: false, fault: connection.explain(error, { expired: false }) };
}
