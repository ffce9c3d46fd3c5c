import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { promisify } from "node:util";
import type { Clock } from "../../functions/contract/ports.ts";
import { findSignatureProblem, type S3Credentials, type SignatureProblem, type SignedRequest } from "./sigv4.ts";

/**
 * The part of S3 that skillbroker uses, in memory on 127.0.0.1, strict where the emulators are lax: every signature is
 * verified, links expire by a clock of the test's own, conditional writes hold, checksums are compared, and what it
 * does not know is refused. Path-style addresses only. Times of ordinary requests are not compared with the clock.
 */

export type S3ServerOptions = {
  readonly credentials: S3Credentials;
  readonly bucket: string;
  /** Decides whether a link has expired. */
  readonly clock: Clock;
};

/**
 * What happens to one coming request. `hang`: no answer, ever. `hang-in-body`: headers, then nothing. `cut-body`: the
 * connection ends before the body does. `serve-then-drop`: done, but the answer is lost. An error: answered, not done.
 */
export type Behaviour =
  | "serve"
  | "hang"
  | "hang-in-body"
  | "cut-body"
  | "serve-then-drop"
  | { readonly status: number; readonly code: string };

export type S3Server = {
  readonly url: string;
  /** `PUT key`, `GET key`, `GET ?list`, in the order of arrival. */
  readonly requests: readonly string[];
  /** One for each coming request; after them all is served. */
  behave(...plan: readonly Behaviour[]): void;
  connections(): Promise<number>;
  close(): Promise<void>;
};

type S3Object = {
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
};

type Answer = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
};

type Request = SignedRequest & {
  readonly bucket: string;
  /** Empty for the bucket itself. */
  readonly key: string;
  readonly query: URLSearchParams;
};

const MAX_KEY_BYTES = 1024;
const MAX_PAGE = 1000;

export async function startS3Server({ credentials, bucket, clock }: S3ServerOptions): Promise<S3Server> {
  const objects = new Map<string, S3Object>();
  const requests: string[] = [];
  const planned: Behaviour[] = [];
  const server = createServer(async (incoming, response) => {
    const behaviour = planned.shift() ?? "serve";
    const request = await readRequest(incoming);
    if (request === undefined) return;
    requests.push(`${request.method} ${request.key || "?list"}`);
    if (behaviour === "hang") return;
    if (typeof behaviour === "object") write(response, toError(behaviour.status, behaviour.code));
    else write(response, answer(request), behaviour);
  });
  const answer = (request: Request): Answer => {
    const problem = findSignatureProblem(request, credentials, clock());
    if (problem !== undefined) return toError(statusOf(problem), problem);
    return request.bucket === bucket ? serve(request, objects) : toError(404, "NoSuchBucket");
  };
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    behave: (...plan) => {
      planned.push(...plan);
    },
    connections: promisify(server.getConnections.bind(server)),
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function statusOf(problem: SignatureProblem): number {
  return problem === "AuthorizationQueryParametersError" || problem === "XAmzContentSHA256Mismatch" ? 400 : 403;
}

function serve(request: Request, objects: Map<string, S3Object>): Answer {
  const { method, key, query } = request;
  if (key === "") return method === "GET" && query.get("list-type") === "2" ? list(query, objects) : notImplemented();
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return toError(400, "KeyTooLongError");
  if (method === "PUT") return put(request, objects);
  if (method === "GET" || method === "HEAD") return get(request, objects);
  if (method !== "DELETE") return notImplemented();
  objects.delete(key);
  return { status: 204 };
}

function put({ key, headers, body }: Request, objects: Map<string, S3Object>): Answer {
  const refused = findBodyProblem(headers, body) ?? findConditionProblem(headers, objects.get(key));
  if (refused !== undefined) return refused;
  const etag = `"${createHash("md5").update(body).digest("hex")}"`;
  const metadata = Object.entries(headers).filter(([name]) => name.startsWith("x-amz-meta-"));
  const kept = { "content-type": headers["content-type"] ?? "binary/octet-stream", ...toStrings(metadata) };
  objects.set(key, { bytes: body, etag, headers: kept });
  return { status: 200, headers: { etag } };
}

function findBodyProblem(headers: Request["headers"], body: Uint8Array): Answer | undefined {
  if (headers["content-encoding"]?.includes("aws-chunked")) return notImplemented();
  if (headers["x-amz-copy-source"] !== undefined) return notImplemented();
  const checksum = headers["x-amz-checksum-sha256"];
  if (checksum === undefined) return undefined;
  if (Buffer.from(checksum, "base64").length !== 32) return toError(400, "InvalidRequest");
  return checksum === createHash("sha256").update(body).digest("base64") ? undefined : toError(400, "BadDigest");
}

function findConditionProblem(headers: Request["headers"], present: S3Object | undefined): Answer | undefined {
  const { "if-none-match": absent, "if-match": match } = headers;
  if (absent !== undefined && absent !== "*") return notImplemented();
  if (absent !== undefined && present !== undefined) return toError(412, "PreconditionFailed");
  if (match === undefined) return undefined;
  if (present === undefined) return toError(404, "NoSuchKey");
  return present.etag === match ? undefined : toError(412, "PreconditionFailed");
}

const OVERRIDES = ["content-type", "content-disposition", "cache-control", "content-language", "expires"];

function get({ method, key, query, headers: asked }: Request, objects: Map<string, S3Object>): Answer {
  const found = objects.get(key);
  // An answer to HEAD has no body that could name the code.
  if (found === undefined) return method === "HEAD" ? { status: 404 } : toError(404, "NoSuchKey");
  if (asked["if-none-match"] === found.etag) return { status: 304, headers: { etag: found.etag } };
  const overrides = OVERRIDES.map((name) => [name, query.get(`response-${name}`) ?? undefined] as const);
  const headers = {
    ...found.headers,
    etag: found.etag,
    "accept-ranges": "bytes",
    ...toStrings(overrides),
    "content-length": String(found.bytes.length),
  };
  return method === "HEAD" ? { status: 200, headers } : { status: 200, headers, body: found.bytes };
}

function list(query: URLSearchParams, objects: Map<string, S3Object>): Answer {
  if (query.has("delimiter") || query.has("continuation-token")) return notImplemented();
  const prefix = query.get("prefix") ?? "";
  const after = Buffer.from(query.get("start-after") ?? "");
  const limit = Math.min(Number(query.get("max-keys") ?? MAX_PAGE), MAX_PAGE);
  const encoded = query.get("encoding-type") === "url";
  const toText = (text: string) => (encoded ? encodeURIComponent(text).replaceAll("%2F", "/") : escapeXml(text));
  const keys = [...objects.keys()]
    .filter((key) => key.startsWith(prefix) && Buffer.compare(Buffer.from(key), after) > 0)
    .sort((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
  const page = keys.slice(0, limit);
  const contents = page.map((key) => `<Contents><Key>${toText(key)}</Key></Contents>`).join("");
  const truncated = limit > 0 && keys.length > limit;
  const token = truncated ? `<NextContinuationToken>${randomUUID()}</NextContinuationToken>` : "";
  const body =
    `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Prefix>${toText(prefix)}</Prefix>` +
    `<KeyCount>${page.length}</KeyCount><MaxKeys>${limit}</MaxKeys>${encoded ? "<EncodingType>url</EncodingType>" : ""}` +
    `<IsTruncated>${truncated}</IsTruncated>${token}${contents}</ListBucketResult>`;
  return { status: 200, ...toXml(body) };
}

function notImplemented(): Answer {
  return toError(501, "NotImplemented");
}

function toError(status: number, code: string): Answer {
  return { status, ...toXml(`<Error><Code>${code}</Code><Message>${code}</Message><HostId>local</HostId></Error>`) };
}

function toXml(body: string): { headers: Record<string, string>; body: string } {
  return {
    headers: { "content-type": "application/xml" },
    body: `<?xml version="1.0" encoding="UTF-8"?>\n${body}`,
  };
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
}

function write(response: ServerResponse, { status, headers, body = "" }: Answer, behaviour: Behaviour = "serve"): void {
  if (behaviour === "serve-then-drop") {
    response.destroy();
    return;
  }
  const bytes = Buffer.from(body);
  response.writeHead(status, { "x-amz-request-id": randomUUID(), ...headers });
  if (behaviour === "serve") {
    response.end(bytes);
    return;
  }
  response.write(bytes.subarray(0, bytes.length / 2), () => {
    if (behaviour === "cut-body") response.destroy();
  });
}

/** Undefined when the client went away before the end of its request. */
async function readRequest(incoming: IncomingMessage): Promise<Request | undefined> {
  const { method = "", url: target = "/" } = incoming;
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of incoming) chunks.push(chunk);
  } catch {
    return undefined;
  }
  const { pathname, searchParams: query } = new URL(target, "http://s3.test");
  const [, bucket = "", ...rest] = pathname.split("/");
  const key = decodeURIComponent(rest.join("/"));
  return { method, target, headers: toPlainHeaders(incoming), body: Buffer.concat(chunks), bucket, key, query };
}

function toPlainHeaders(incoming: IncomingMessage): Record<string, string | undefined> {
  const entries = Object.entries(incoming.headers);
  return Object.fromEntries(entries.map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : value]));
}

function toStrings(entries: readonly (readonly [string, string | undefined])[]): Record<string, string> {
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
