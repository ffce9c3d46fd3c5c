import type { IncomingMessage } from "node:http";
import type { APIGatewayProxyEventV2WithIAMAuthorizer } from "aws-lambda";
import { decodeUtf8 } from "../functions/contract/text.ts";

/** A request as API Gateway delivers it (HTTP API, payload format 2.0), for a caller signed in with IAM. */

/** The one principal of a machine. */
const LOCAL_PRINCIPAL = {
  accessKey: "local",
  accountId: "000000000000",
  callerId: "local",
  cognitoIdentity: null,
  principalOrgId: "",
  userArn: "arn:aws:iam::000000000000:user/local",
  userId: "local",
} as const;

/** Bodies that the gateway hands over as text; all others come as base64. */
const TEXT_TYPE = /^(?:text\/|application\/(?:json|javascript|xml)\b|application\/[a-z0-9.-]+\+json\b)/i;

/** A request target, split and not decoded. */
export type Target = { readonly path: string; readonly query: string };

export type EventSource = {
  readonly request: IncomingMessage;
  readonly target: Target;
  readonly body: Uint8Array;
  readonly requestId: string;
  /** Epoch ms. */
  readonly now: number;
};

export function toHttpEvent(source: EventSource): APIGatewayProxyEventV2WithIAMAuthorizer {
  const { request, target, body, requestId, now } = source;
  const { cookie, ...headers } = joinedHeaders(request);
  const query = joinedQuery(target.query);
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: target.path,
    rawQueryString: target.query,
    ...(cookie === undefined ? {} : { cookies: toCookies(cookie) }),
    headers,
    ...(query === undefined ? {} : { queryStringParameters: query }),
    requestContext: {
      accountId: "000000000000",
      apiId: "local",
      authorizer: { iam: LOCAL_PRINCIPAL },
      domainName: headers.host ?? "",
      domainPrefix: "local",
      http: {
        method: request.method ?? "GET",
        path: target.path,
        protocol: `HTTP/${request.httpVersion}`,
        sourceIp: request.socket.remoteAddress ?? "127.0.0.1",
        userAgent: headers["user-agent"] ?? "",
      },
      requestId,
      routeKey: "$default",
      stage: "$default",
      time: toLogTime(now),
      timeEpoch: now,
    },
    ...toBody(body, headers["content-type"] ?? ""),
  };
}

/** Repeated headers joined by a comma, as the gateway joins them. */
function joinedHeaders({ headersDistinct }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headersDistinct).map(([name, values = []]) => [name, values.join(",")]));
}

function toCookies(header: string): string[] {
  return header
    .split(/[;,]/)
    .map((cookie) => cookie.trim())
    .filter((cookie) => cookie !== "");
}

/** Undefined for none: the gateway then leaves the field out. */
function joinedQuery(query: string): Record<string, string> | undefined {
  const parameters = new URLSearchParams(query);
  const joined = [...new Set(parameters.keys())].map((key) => [key, parameters.getAll(key).join(",")] as const);
  return joined.length === 0 ? undefined : Object.fromEntries(joined);
}

/** What is no UTF-8 goes as base64: the handler must see the bytes that were sent, and refuse them. */
function toBody(bytes: Uint8Array, type: string): { body?: string; isBase64Encoded: boolean } {
  if (bytes.length === 0) return { isBase64Encoded: false };
  const text = TEXT_TYPE.test(type) ? decodeUtf8(bytes) : undefined;
  if (text !== undefined) return { body: text, isBase64Encoded: false };
  return { body: Buffer.from(bytes).toString("base64"), isBase64Encoded: true };
}

/** `12/Mar/2020:19:03:58 +0000`, the Common Log Format that the gateway writes. */
function toLogTime(epochMs: number): string {
  const [, day, month, year, time] = new Date(epochMs).toUTCString().split(" ");
  return `${day}/${month}/${year}:${time} +0000`;
}
