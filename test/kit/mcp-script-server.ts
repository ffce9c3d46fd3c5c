import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import * as z from "zod";

/**
 * A server over HTTP that says what a test has it say, whatever the protocol thinks of it: for everything that an SDK
 * would not let a server do.
 */

export type Exchange = {
  /** JSON-RPC method, or the HTTP method of a request without a body. */
  readonly method: string;
  readonly id: unknown;
  readonly params: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
  /** How many requests of this method came before. */
  readonly before: number;
  readonly response: ServerResponse;
};

/** The script has written the response itself, or means to. */
export const WRITTEN = Symbol("written");

/** A result, as JSON; undefined leaves the request to the manners of the revision. May also throw: the line breaks. */
export type Script = (exchange: Exchange) => unknown;

export type ScriptOptions = {
  readonly protocol: "2026-07-28" | "2025-11-25";
  /** Of the older revision: whether it hands out sessions. */
  readonly sessions?: boolean;
};

export type ScriptServer = {
  readonly url: string;
  /** All requests so far, in order. */
  readonly methods: readonly string[];
  close(): Promise<void>;
};

const Message = z.object({
  method: z.string(),
  id: z.unknown().optional(),
  params: z.record(z.string(), z.unknown()).optional(),
});

const CAPABILITIES = { tools: { listChanged: true } };
const SERVER_INFO = { name: "script", version: "1" };

export async function startScriptServer(script: Script, options: ScriptOptions): Promise<ScriptServer> {
  const methods: string[] = [];
  const manners = options.protocol === "2026-07-28" ? answerStateless : answerWithSession;
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const exchange = { ...(await readExchange(request)), response };
    const before = methods.filter((method) => method === exchange.method).length;
    methods.push(exchange.method);
    const scripted = await script({ ...exchange, before });
    if (scripted === WRITTEN) return;
    if (scripted === undefined) return manners({ ...exchange, before }, options);
    sendResult(exchange, scripted);
  };
  const http = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const address = http.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/mcp`,
    methods,
    close: async () => {
      const closed = once(http, "close");
      http.close();
      http.closeAllConnections();
      await closed;
    },
  };
}

async function readExchange(request: IncomingMessage): Promise<Omit<Exchange, "before" | "response">> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { headers, method = "" } = request;
  if (chunks.length === 0) return { method, id: undefined, params: {}, headers };
  const { params = {}, ...message } = Message.parse(JSON.parse(Buffer.concat(chunks).toString("utf8")));
  return { method: message.method, id: message.id, params, headers };
}

function answerStateless(exchange: Exchange): typeof WRITTEN {
  if (exchange.method !== "server/discover") return sendStatus(exchange, exchange.id === undefined ? 202 : 404);
  return sendResult(exchange, {
    resultType: "complete",
    supportedVersions: ["2026-07-28"],
    capabilities: CAPABILITIES,
    ttlMs: 0,
    cacheScope: "private",
  });
}

function answerWithSession(exchange: Exchange, { sessions = true }: ScriptOptions): typeof WRITTEN {
  if (exchange.method === "initialize") {
    if (sessions) exchange.response.setHeader("mcp-session-id", `session-${exchange.before + 1}`);
    return sendResult(exchange, { protocolVersion: "2025-11-25", capabilities: CAPABILITIES, serverInfo: SERVER_INFO });
  }
  if (exchange.method === "GET") return sendStatus(exchange, 405);
  if (exchange.method === "DELETE") return sendStatus(exchange, 200);
  return sendStatus(exchange, exchange.id === undefined ? 202 : 400);
}

export function sendStatus({ response }: Pick<Exchange, "response">, status: number, text = ""): typeof WRITTEN {
  response.writeHead(status, { "content-type": "text/plain" }).end(text);
  return WRITTEN;
}

export function sendResult({ id, response }: Pick<Exchange, "id" | "response">, result: unknown): typeof WRITTEN {
  return sendJson({ response }, { jsonrpc: "2.0", id, result });
}

export function sendError({ id, response }: Pick<Exchange, "id" | "response">, error: object): typeof WRITTEN {
  return sendJson({ response }, { jsonrpc: "2.0", id, error });
}

export function sendJson({ response }: Pick<Exchange, "response">, body: unknown): typeof WRITTEN {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  return WRITTEN;
}

/** Begins a stream of events, with these messages on it. */
export function sendEvents({ response }: Pick<Exchange, "response">, messages: readonly unknown[]): typeof WRITTEN {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const message of messages) response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  return WRITTEN;
}
