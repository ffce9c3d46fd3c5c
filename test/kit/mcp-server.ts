import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import type { JsonObject } from "../../functions/contract/tool.ts";

/**
 * An honest MCP server over HTTP that a test commands: the SDK's own, so that both revisions of the protocol are spoken
 * by somebody else than us. It also fails as servers in front of which something stands fail: by status, by silence, by
 * a broken line.
 */

export type ServedTool = {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: { readonly type: "object" } & JsonObject;
  readonly outputSchema?: { readonly type: "object" } & JsonObject;
  readonly annotations?: JsonObject;
  /** The result of a call; its arguments as text when left out. */
  readonly answer?: (callArguments: JsonObject) => JsonObject | Promise<JsonObject>;
};

/** An HTTP status, no answer at all, a broken line, or an answer that is none. */
export type Failure = number | "stall" | "reset" | "garbage";

export type McpServerOptions = {
  readonly tools: readonly ServedTool[];
  /** Which revisions it speaks; both when left out. */
  readonly protocol?: "2026-07-28" | "2025-11-25" | "both";
  readonly ttlMs?: number;
  /** Tools a page; all in one when left out. */
  readonly pageSize?: number;
  /** Refused with 401 without this `authorization` header. */
  readonly authorization?: string;
};

export type McpTestServer = {
  readonly url: string;
  setTools(tools: readonly ServedTool[]): void;
  /** `notifications/tools/list_changed` to everyone who listens. */
  notify(): void;
  /** From now on; undefined: no more. Only for the method, when one is given. */
  fail(how: Failure | undefined, only?: { readonly method: string }): void;
  /** Lists wait, read and not answered, until the function that is returned is called. */
  holdLists(): () => void;
  /** JSON-RPC methods of all requests so far, in order. */
  methods(): readonly string[];
  /** How often `tools/list` was asked for, each page counted. */
  listCalls(): number;
  /** Arguments of all calls that reached a tool. */
  calls(): readonly { readonly tool: string; readonly arguments: JsonObject }[];
  /** Streams on which somebody waits for notifications. */
  listeners(): number;
  /** Breaks these streams, without a word. */
  dropListeners(): void;
  /** Sessions of the older revision; the next request of each is answered with 404. */
  forgetSessions(): void;
  close(): Promise<void>;
};

type LegacySession = { readonly transport: NodeStreamableHTTPServerTransport; readonly server: Server };

/** What the test commands, and what it may ask about afterwards. */
type State = {
  tools: readonly ServedTool[];
  failure: { readonly how: Failure; readonly method?: string | undefined } | undefined;
  /** What every list waits for before it is answered. */
  held: Promise<void>;
  readonly methods: string[];
  readonly calls: { readonly tool: string; readonly arguments: JsonObject }[];
  readonly sessions: Map<string, LegacySession>;
  readonly streams: Set<ServerResponse>;
};

/** On a free port of this machine. */
export async function startMcpServer(options: McpServerOptions): Promise<McpTestServer> {
  const state: State = {
    tools: options.tools,
    failure: undefined,
    held: Promise.resolve(),
    methods: [],
    calls: [],
    sessions: new Map(),
    streams: new Set(),
  };
  const modern = createMcpHandler(() => createPeer(state, options), { legacy: "reject", keepAliveMs: 0 });
  const serveModern = toNodeHandler(modern);
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await readJson(request);
    if (interferes(state, options, { request, response, body })) return undefined;
    const { protocol = "both" } = options;
    const isModern = protocol === "2026-07-28" || (protocol === "both" && isEnveloped(body));
    if (!isModern) return serveLegacy(state, options, { request, response, body });
    return serveModern(
      Object.assign(request, { method: request.method ?? "", url: request.url ?? "" }),
      response,
      body,
    );
  };
  const http = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const address = http.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/mcp`,
    setTools: (tools) => {
      state.tools = tools;
    },
    notify: () => {
      modern.notify.toolsChanged();
      for (const { server } of state.sessions.values()) void server.sendToolListChanged().catch(() => undefined);
    },
    fail: (how, only) => {
      state.failure = how === undefined ? undefined : { how, method: only?.method };
    },
    holdLists: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      state.held = promise;
      return resolve;
    },
    methods: () => state.methods,
    listCalls: () => state.methods.filter((method) => method === "tools/list").length,
    calls: () => state.calls,
    listeners: () => state.streams.size,
    dropListeners: () => {
      for (const stream of state.streams) stream.destroy();
    },
    forgetSessions: () => state.sessions.clear(),
    close: async () => {
      if (!http.listening) return;
      const closed = once(http, "close");
      http.close();
      http.closeAllConnections();
      await Promise.all([closed, modern.close(), ...[...state.sessions.values()].map(({ server }) => server.close())]);
    },
  };
}

/** One server of the SDK: for one request of the newer revision, or for one session of the older. */
function createPeer(state: State, { ttlMs, pageSize }: McpServerOptions): Server {
  const hints = ttlMs === undefined ? {} : { cacheHints: { "tools/list": { ttlMs, cacheScope: "private" as const } } };
  const server = new Server(
    { name: "test", version: "1" },
    { capabilities: { tools: { listChanged: true } }, ...hints },
  );
  server.setRequestHandler("tools/list", async ({ params }) => {
    const start = Number(params?.cursor ?? 0);
    const end = start + (pageSize ?? state.tools.length);
    const tools = state.tools.slice(start, end).map(({ answer: _, ...definition }) => ({ ...definition }));
    const page = end < state.tools.length ? { tools, nextCursor: String(end) } : { tools };
    await state.held;
    return page;
  });
  server.setRequestHandler("tools/call", async ({ params: { name, arguments: given = {} } }) => {
    state.calls.push({ tool: name, arguments: given });
    const tool = state.tools.find((each) => each.name === name);
    if (tool === undefined) return { content: [{ type: "text", text: `no tool ${name}` }], isError: true };
    return { content: [{ type: "text", text: JSON.stringify(given) }], ...(await tool.answer?.(given)) };
  });
  return server;
}

type Incoming = { readonly request: IncomingMessage; readonly response: ServerResponse; readonly body: unknown };

/** Keeps the books, and answers in the place of the server where the test has it fail. */
function interferes(state: State, { authorization }: McpServerOptions, { request, response, body }: Incoming): boolean {
  const method = methodOf(body) ?? request.method ?? "";
  state.methods.push(method);
  const { failure } = state;
  if (authorization !== undefined && request.headers.authorization !== authorization) answerStatus(response, 401);
  else if (failure !== undefined && (failure.method ?? method) === method) failWith(response, failure.how);
  else {
    if (method === "GET" || method === "subscriptions/listen") {
      state.streams.add(response);
      response.once("close", () => state.streams.delete(response));
    }
    return false;
  }
  return true;
}

async function serveLegacy(
  state: State,
  options: McpServerOptions,
  { request, response, body }: Incoming,
): Promise<void> {
  const id = request.headers["mcp-session-id"];
  const known = typeof id === "string" ? state.sessions.get(id) : undefined;
  if (known !== undefined) return known.transport.handleRequest(request, response, body);
  if (id !== undefined) return answerStatus(response, 404);
  const server = createPeer(state, options);
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (created) => void state.sessions.set(created, { transport, server }),
    onsessionclosed: (closed) => void state.sessions.delete(closed),
  });
  await server.connect(transport);
  return transport.handleRequest(request, response, body);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? undefined : JSON.parse(text);
}

function methodOf(body: unknown): string | undefined {
  return typeof body === "object" && body !== null && "method" in body ? String(body.method) : undefined;
}

/** Requests of the newer revision say which they speak. */
function isEnveloped(body: unknown): boolean {
  return JSON.stringify(body ?? null).includes('"io.modelcontextprotocol/protocolVersion"');
}

function answerStatus(response: ServerResponse, status: number): void {
  response.writeHead(status, { "content-type": "text/plain" }).end("no");
}

function failWith(response: ServerResponse, how: Failure): void {
  if (typeof how === "number") answerStatus(response, how);
  else if (how === "reset") response.destroy();
  else if (how === "garbage") response.writeHead(200, { "content-type": "application/json" }).end("<html>");
}
