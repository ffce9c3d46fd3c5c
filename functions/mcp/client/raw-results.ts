import {
  type JSONRPCMessage,
  ProtocolError,
  type RequestId,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/client";
import * as z from "zod";

/**
 * A transport that hands results over as they came. The SDK checks every result against its own schemas, so one tool
 * with a broken definition would cost the whole list, and one block of an unknown type the whole answer. It is given an
 * empty result of the same kind, with the real one in `_meta`.
 */

const RAW = "skillbroker/raw";

const EMPTY_RESULTS: ReadonlyMap<string, Readonly<Record<string, unknown>>> = new Map([
  ["tools/list", { tools: [], ttlMs: 0, cacheScope: "private" }],
  ["tools/call", { content: [] }],
]);

/** What a request through {@link withRawResults} is answered with. */
export const RawResult = z.looseObject({ _meta: z.object({ [RAW]: z.unknown() }) });

/** The result as the server sent it. */
export function rawOf(result: unknown): unknown {
  return RawResult.parse(result)._meta[RAW];
}

/** The answer that is made up for a server that ended its stream without one. */
const STREAM_ENDED = { code: -32000, message: "the stream ended without an answer" } as const;

/** True for an error that a server sent, false for the one that is made up for it. */
export function isAnswer(error: unknown): error is ProtocolError {
  return ProtocolError.isInstance(error) && error.message !== STREAM_ENDED.message;
}

export function withRawResults(inner: Transport): Transport {
  const asked = new Map<RequestId, string>();
  const answer = (message: JSONRPCMessage) => outer.onmessage?.(message);
  const outer: Transport = {
    start: () => {
      inner.onmessage = (message) => answer(toRaw(message, asked));
      inner.onerror = (error) => outer.onerror?.(error);
      inner.onclose = () => outer.onclose?.();
      return inner.start();
    },
    send: (message, options) => {
      const id = requestIdOf(message);
      if (id === undefined) return inner.send(message, options);
      if ("method" in message && EMPTY_RESULTS.has(message.method)) asked.set(id, message.method);
      return inner.send(
        message,
        withStreamEnd(options, () => answer({ jsonrpc: "2.0", id, error: STREAM_ENDED })),
      );
    },
    close: () => inner.close(),
    get sessionId() {
      return inner.sessionId;
    },
    setProtocolVersion: (version) => inner.setProtocolVersion?.(version),
    setSupportedProtocolVersions: (versions) => inner.setSupportedProtocolVersions?.(versions),
    ...(inner.hasPerRequestStream === true ? { hasPerRequestStream: true } : {}),
    // The SDK knows a pipe by these two.
    ...("pid" in inner && "stderr" in inner ? { pid: null, stderr: null } : {}),
  };
  return outer;
}

function requestIdOf(message: JSONRPCMessage): RequestId | undefined {
  return "method" in message && "id" in message ? message.id : undefined;
}

/** The SDK waits for an answer for as long as it may take, although the stream that would carry it has ended. */
function withStreamEnd(options: TransportSendOptions | undefined, onEnd: () => void): TransportSendOptions {
  return {
    ...options,
    onRequestStreamEnd: () => {
      options?.onRequestStreamEnd?.();
      onEnd();
    },
  };
}

function toRaw(message: JSONRPCMessage, asked: Map<RequestId, string>): JSONRPCMessage {
  if ("method" in message || message.id === undefined) return message;
  const empty = EMPTY_RESULTS.get(asked.get(message.id) ?? "");
  asked.delete(message.id);
  if (empty === undefined || !("result" in message)) return message;
  const { result } = message;
  // Asks for input instead of answering; the SDK says so.
  if (result.resultType === "input_required") return message;
  const { resultType } = result;
  const kind = resultType === undefined ? {} : { resultType };
  return { ...message, result: { ...empty, ...kind, _meta: { [RAW]: result } } };
}
