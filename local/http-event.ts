import type { IncomingMessage } from "node:http";
import type { APIGatewayProxyEventV2WithIAMAuthorizer } from "aws-lambda";

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

export type EventSource = {
  readonly request: IncomingMessage;
  readonly url: URL;
  readonly body: Uint8Array;
  readonly requestId: string;
  /** Epoch ms. */
  readonly now: number;
};

export function toHttpEvent({
  request,
  url,
  body,
  requestId,
  now,
}: EventSource): APIGatewayProxyEventV2WithIAMAuthorizer {
  const method = request.method ?? "GET";
  const query = [...new Set(url.searchParams.keys())].map(
    (key) => [key, url.searchParams.getAll(key).join(",")] as const,
  );
  const event: APIGatewayProxyEventV2WithIAMAuthorizer = {
    version: "2.0",
    routeKey: "$default",
    rawPath: url.pathname,
    rawQueryString: url.search.slice(1),
    headers: joinedHeaders(request),
    requestContext: {
      accountId: "000000000000",
      apiId: "local",
      authorizer: { iam: LOCAL_PRINCIPAL },
      domainName: url.host,
      domainPrefix: "local",
      http: {
        method,
        path: url.pathname,
        protocol: `HTTP/${request.httpVersion}`,
        sourceIp: request.socket.remoteAddress ?? "127.0.0.1",
        userAgent: request.headers["user-agent"] ?? "",
      },
      requestId,
      routeKey: "$default",
      stage: "$default",
      time: new Date(now).toUTCString(),
      timeEpoch: now,
    },
    isBase64Encoded: body.length > 0,
  };
  if (query.length > 0) event.queryStringParameters = Object.fromEntries(query);
  if (body.length > 0) event.body = Buffer.from(body).toString("base64");
  return event;
}

function joinedHeaders(request: IncomingMessage): Record<string, string> {
  const headers = Object.entries(request.headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(",") : value] as const],
  );
  return Object.fromEntries(headers);
}
