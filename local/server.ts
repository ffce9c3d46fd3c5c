import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import type { Context } from "aws-lambda";
import { createHttpHandler, type HttpHandler } from "../functions/aws/http/handler.ts";
import { type HttpResponse, toProblem } from "../functions/aws/http/response.ts";
import { Fault, SkillError } from "../functions/contract/fault.ts";
import { toContentDisposition } from "../functions/contract/file-name.ts";
import type { Clock, Log } from "../functions/contract/ports.ts";
import { MAX_HTTP_BODY_BYTES, PRODUCT_VERSION } from "../functions/contract/product.ts";
import { PINS_FILE, type Pins, parsePinsText } from "../functions/repository/pins.ts";
import { createService } from "../functions/service/service.ts";
import { type EmbeddedObjectStore, LINK_PATH, openEmbeddedObjectStore } from "./embedded-object-store.ts";
import { toHttpEvent } from "./http-event.ts";
import type { Project } from "./project.ts";

/**
 * The service on one machine: HTTP requests become the very events that API Gateway delivers, the very handler answers
 * them, and only the object store is another. It listens on loopback alone, and a web page in the user's browser
 * cannot use it: a foreign `Host` (DNS rebinding) and a foreign `Origin` are refused.
 */

export type LocalServerOptions = {
  readonly project: Project;
  /** Directory for data; made when missing. */
  readonly dataDirectory: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly clock: Clock;
  readonly log: Log;
};

export type LocalServer = { readonly url: string; close(): Promise<void> };

/** API Gateway takes 10 MB; what is beyond is refused without being read. */
const MAX_READ_BYTES = 10 * 1024 * 1024;
const MAX_DOWNLOAD_BYTES = 64 * 1024 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
const LOOPBACK = "127.0.0.1";

/** Resolves once the server accepts connections. */
export async function startLocalServer(options: LocalServerOptions): Promise<LocalServer> {
  const { project, clock, log } = options;
  let url = "";
  const store = openEmbeddedObjectStore({ directory: options.dataDirectory, clock, baseUrl: () => url });
  const { settings } = project;
  const api = createService({
    store,
    clock,
    randomBytes,
    log,
    skillsRoot: project.skillsRoot,
    pins: () => readPins(project.skillsRoot),
    repositories: settings.repositories,
    approvals: settings.tools,
    limits: settings.limits,
    artifactDays: settings.artifactDays,
  });
  const handler = createHttpHandler({
    api,
    auth: "iam",
    maxBodyBytes: MAX_HTTP_BODY_BYTES,
    version: PRODUCT_VERSION,
    log,
    clock,
  });
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    answer(request, { handler, store, clock, baseUrl: url }).then(
      (answered) => write(response, request, answered),
      (error: unknown) => {
        log("error", "local server failed", { error });
        write(response, request, toProblem(error, "unknown"));
      },
    );
  });
  url = `http://${LOOPBACK}:${await listen(server, options.port)}`;
  return {
    url,
    close: async () => {
      await new Promise<void>((done) => {
        server.close(() => done());
        server.closeAllConnections();
      });
      store.close();
    },
  };
}

/** Throws `SkillError`, which refuses every repository; the service stays up. */
export function readPins(skillsRoot: string): Pins {
  try {
    return parsePinsText(readFileSync(join(skillsRoot, PINS_FILE), "utf8"));
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new SkillError(`${PINS_FILE} cannot be read; write it with skillbroker pin`, { cause: error });
  }
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
  readonly baseUrl: string;
};

type Answer = HttpResponse & { readonly bytes?: Uint8Array };

async function answer(request: IncomingMessage, { handler, store, clock, baseUrl }: Answering): Promise<Answer> {
  const requestId = randomUUID();
  const foreign = findForeignCaller(request, baseUrl);
  if (foreign !== undefined) return withRequestId(toProblem(foreign, requestId), requestId);
  const url = parseTarget(request.url ?? "/", baseUrl);
  if (url === undefined)
    return withRequestId(
      toProblem(new Fault("REQUEST_INVALID", "the request target is no path"), requestId),
      requestId,
    );
  if (url.pathname.startsWith(LINK_PATH))
    return withRequestId(await download(request, url, store, requestId), requestId);
  const body = await readBody(request);
  if (body === undefined) {
    const fault = new Fault("PAYLOAD_TOO_LARGE", `the body has more than ${MAX_READ_BYTES} bytes`);
    return withRequestId(toProblem(fault, requestId), requestId);
  }
  return handler(toHttpEvent({ request, url, body, requestId, now: clock() }), toContext(requestId));
}

function parseTarget(target: string, baseUrl: string): URL | undefined {
  return target.startsWith("/") ? (URL.parse(baseUrl + target) ?? undefined) : undefined;
}

function findForeignCaller(request: IncomingMessage, baseUrl: string): Fault | undefined {
  const { port } = new URL(baseUrl);
  const hosts = [LOOPBACK, "localhost", "[::1]"].map((host) => `${host}:${port}`);
  const { host = "", origin } = request.headers;
  if (!hosts.includes(host.toLowerCase())) {
    return new Fault(
      "ACCESS_DENIED",
      `this service answers to ${hosts[0]} only, not to ${JSON.stringify(host.slice(0, 100))}`,
    );
  }
  const crossSite = request.headers["sec-fetch-site"] === "cross-site";
  if (crossSite || (origin !== undefined && !hosts.some((own) => origin.toLowerCase() === `http://${own}`))) {
    return new Fault("ACCESS_DENIED", "requests from other web sites are refused");
  }
  return undefined;
}

/** Undefined when there is more than {@link MAX_READ_BYTES}. */
async function readBody(request: IncomingMessage): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_READ_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function download(
  request: IncomingMessage,
  url: URL,
  store: EmbeddedObjectStore,
  requestId: string,
): Promise<Answer> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return toProblem(new Fault("METHOD_NOT_ALLOWED", "a download link takes GET"), requestId);
  }
  const link = store.readLink(url);
  if (!link.ok) return toProblem(link.fault, requestId);
  const { key, fileName, mediaType } = link.value;
  const object = await store.get(key, { maxBytes: MAX_DOWNLOAD_BYTES });
  if (object === undefined) return toProblem(new Fault("ARTIFACT_NOT_FOUND", "the file was removed"), requestId);
  const headers = {
    "content-type": mediaType,
    "content-disposition": toContentDisposition(fileName),
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-store",
    etag: object.etag,
  };
  return { statusCode: 200, headers, bytes: object.bytes };
}

function withRequestId(response: Answer, requestId: string): Answer {
  return { ...response, headers: { ...response.headers, "x-request-id": requestId } };
}

function write(
  response: ServerResponse,
  request: IncomingMessage,
  { statusCode = 200, headers = {}, body, bytes }: Answer,
): void {
  const content = Buffer.from(bytes ?? body ?? "");
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, String(value));
  if (statusCode !== 204) response.setHeader("content-length", content.length);
  // What was not read of a refused body would be taken for the next request.
  if (!request.complete) response.setHeader("connection", "close");
  response.writeHead(statusCode);
  response.end(request.method === "HEAD" ? undefined : content);
}

function toContext(requestId: string): Context {
  return {
    awsRequestId: requestId,
    callbackWaitsForEmptyEventLoop: false,
    functionName: "skillbroker-local",
    functionVersion: "$LATEST",
    invokedFunctionArn: "arn:aws:lambda:local:000000000000:function:skillbroker-local",
    logGroupName: "local",
    logStreamName: "local",
    memoryLimitInMB: "1024",
    getRemainingTimeInMillis: () => REQUEST_TIMEOUT_MS,
    done: () => undefined,
    fail: () => undefined,
    succeed: () => undefined,
  };
}
