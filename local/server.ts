import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { HttpHandler } from "../functions/aws/http/handler.ts";
import { toProblem } from "../functions/aws/http/response.ts";
import { MethodNotAllowed } from "../functions/aws/http/router.ts";
import { Fault } from "../functions/contract/fault.ts";
import { toContentDisposition } from "../functions/contract/file-name.ts";
import { toSyncLeaseMs } from "../functions/contract/job-times.ts";
import { operatorLimits } from "../functions/contract/limits.ts";
import type { Clock, Log } from "../functions/contract/ports.ts";
import { MAX_HTTP_BODY_BYTES } from "../functions/contract/product.ts";
import { toLifecycle } from "../functions/contract/store-layout.ts";
import { type EmbeddedObjectStore, openEmbeddedObjectStore } from "./embedded-object-store.ts";
import { LINK_PATH } from "./file-links.ts";
import { type Target, toHttpEvent } from "./http-event.ts";
import { type Answer, readBody, refuseConnection, writeAnswer } from "./http-exchange.ts";
import { toLambdaContext } from "./lambda-context.ts";
import { type ServiceOptions, startService } from "./service.ts";
import { LOOPBACK, readTarget, refuseOtherSites } from "./trusted-caller.ts";

/**
 * The service on one machine: HTTP requests become the very events that API Gateway delivers, the very handler answers
 * them, and only the object store is another. It listens on loopback alone, and a web page in the user's browser
 * cannot use it: a foreign `Host` (DNS rebinding) and a foreign `Origin` are refused.
 */

export type LocalServerOptions = ServiceOptions & {
  /** 0 for any free port. */
  readonly port: number;
  /** Milliseconds in which a request must have arrived whole; 30,000 when left out. */
  readonly requestTimeoutMs?: number;
};

/** `close` cuts every connection at once; a job that is running is finished and stored first, and so is a refresh. */
export type LocalServer = { readonly url: string; close(): Promise<void> };

const MAX_DOWNLOAD_BYTES = 64 * 1024 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
const TIMEOUT_CHECK_MS = 5_000;

/** Resolves once the server accepts connections. Rejects with the system's error when the port cannot be had. */
export async function startLocalServer(options: LocalServerOptions): Promise<LocalServer> {
  const { clock, log } = options;
  let port = 0;
  const baseUrl = () => `http://${LOOPBACK}:${port}`;
  const lifecycle = toLifecycle(options.project.settings.artifactDays);
  const store = openEmbeddedObjectStore({ directory: options.dataDirectory, clock, baseUrl, lifecycle });
  const service = await startService(options, store);
  const { handler } = service;
  // Told to the handler; nobody stops it.
  const functionMs = toSyncLeaseMs(operatorLimits(options.project.settings.limits).job_timeout_ms);
  const exchanges = new Set<Promise<void>>();
  const server = createHttpServer(options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS, (request, response) => {
    const exchange = respond(request, response, { handler, store, clock, log, port, functionMs });
    exchanges.add(exchange);
    exchange.finally(() => exchanges.delete(exchange));
  });
  try {
    port = await listen(server, options.port);
  } catch (error) {
    await service.close();
    store.close();
    throw error;
  }
  const stop = async () => {
    await close(server, exchanges);
    await service.close();
    store.close();
  };
  return { url: baseUrl(), close: once(stop) };
}

type OnRequest = (request: IncomingMessage, response: ServerResponse) => void;

function createHttpServer(requestTimeoutMs: number, onRequest: OnRequest): Server {
  const answering = new WeakMap<Duplex, ServerResponse>();
  const take: OnRequest = (request, response) => {
    answering.set(request.socket, response);
    onRequest(request, response);
  };
  const timeouts = {
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.min(requestTimeoutMs, TIMEOUT_CHECK_MS),
  };
  // A missing Host is refused by `readTarget`, with a problem document.
  return createServer({ ...timeouts, requireHostHeader: false }, take)
    .on("checkContinue", take)
    .on("checkExpectation", take)
    .on("clientError", (error, socket) => refuseConnection(error, socket, answering.get(socket)));
}

async function close(server: Server, exchanges: ReadonlySet<Promise<void>>): Promise<void> {
  const closed = new Promise<void>((done) => server.close(() => done()));
  server.closeAllConnections();
  await Promise.all([closed, ...exchanges]);
}

function once<T>(act: () => T): () => T {
  let done: { readonly value: T } | undefined;
  return () => {
    done ??= { value: act() };
    return done.value;
  };
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((done, fail) => {
    server.once("error", fail);
    server.listen(port, LOOPBACK, done);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Fault("DEFECT", "the server has no port");
  return address.port;
}

type Answering = {
  readonly handler: HttpHandler;
  readonly store: EmbeddedObjectStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly port: number;
  readonly functionMs: number;
};

/** Never rejects: an unhandled rejection would end the server. */
async function respond(request: IncomingMessage, response: ServerResponse, context: Answering): Promise<void> {
  const requestId = randomUUID();
  try {
    await writeAnswer(request, response, await answer(request, response, { ...context, requestId }));
  } catch (error) {
    // The client went away, or the server is closing: nobody is there to be answered.
    if (response.socket === null || response.socket.destroyed || response.headersSent) {
      response.destroy();
      return;
    }
    context.log("error", "local server failed", { request_id: requestId, error });
    await writeAnswer(request, response, toAnswer(error, requestId)).catch(() => response.destroy());
  }
}

type Exchange = Answering & { readonly requestId: string };

async function answer(request: IncomingMessage, response: ServerResponse, exchange: Exchange): Promise<Answer> {
  const { handler, store, clock, port, requestId } = exchange;
  const target = readTarget(request, port);
  if (!target.ok) return toAnswer(target.fault, requestId);
  // A link carries its own permission and may be clicked on any page.
  if (target.value.path.startsWith(LINK_PATH)) return download(request, target.value, { store, port, requestId });
  const ours = refuseOtherSites(request, port);
  if (!ours.ok) return toAnswer(ours.fault, requestId);
  const body = await readBody(request, response, { maxBytes: MAX_HTTP_BODY_BYTES });
  if (!body.ok) return toAnswer(body.fault, requestId);
  const event = toHttpEvent({ request, target: target.value, body: body.value, requestId, now: clock() });
  return handler(
    event,
    toLambdaContext({ requestId, functionName: "skillbroker-local", remainingMs: () => exchange.functionMs }),
  );
}

async function download(
  request: IncomingMessage,
  { path, query }: Target,
  { store, port, requestId }: Pick<Exchange, "store" | "port" | "requestId">,
): Promise<Answer> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return toAnswer(new MethodNotAllowed(["GET", "HEAD"]), requestId);
  }
  const url = URL.parse(`http://${LOOPBACK}:${port}${path}?${query}`);
  const link = url === null ? undefined : store.readLink(url);
  if (link === undefined || !link.ok) {
    return toAnswer(link?.fault ?? new Fault("ACCESS_DENIED", "this is no link"), requestId);
  }
  const { key, fileName, mediaType } = link.value;
  const object = await store.get(key, { maxBytes: MAX_DOWNLOAD_BYTES });
  if (object === undefined) return toAnswer(new Fault("ARTIFACT_NOT_FOUND", "the file was removed"), requestId);
  const headers = {
    "content-type": mediaType,
    "content-disposition": toContentDisposition(fileName),
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-store",
    etag: object.etag,
    "x-request-id": requestId,
  };
  return { statusCode: 200, headers, bytes: object.bytes };
}

function toAnswer(error: unknown, requestId: string): Answer {
  const problem = toProblem(error, requestId);
  return { ...problem, headers: { ...problem.headers, "x-request-id": requestId } };
}
