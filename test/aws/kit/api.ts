import { randomBytes, randomUUID } from "node:crypto";
import type {
  APIGatewayProxyEventV2,
  APIGatewayProxyEventV2WithIAMAuthorizer,
  APIGatewayProxyEventV2WithJWTAuthorizer,
} from "aws-lambda";
import * as z from "zod";
import { type Authorization, type GatewayRules, type Matched, matchRoute } from "./gateway-rules.ts";
import type { Invoked } from "./lambda.ts";
import { matches } from "./permissions.ts";
import { toTraceId } from "./runtime-api.ts";

/**
 * What an HTTP API does before and after the function: it finds the route, says who may, shapes the event, and waits.
 */

export type GatewayRequest = {
  readonly method?: string;
  /** Encoded, as it stands in a request. */
  readonly path: string;
  /** Without the question mark, encoded. */
  readonly query?: string;
  /** Names in lower case; repeated ones joined by a comma. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Undefined: nobody. */
  readonly caller?: Caller | undefined;
};

export type Caller = IamCaller | JwtCaller;
/** Who signed the request, and what their policies let them call: ARNs with wildcards; everything when left out. */
export type IamCaller = { readonly userArn: string; readonly mayCall?: readonly string[] };
/** What a token says whose signature holds. */
export type JwtCaller = { readonly claims: Readonly<Record<string, unknown>> };

export type GatewayAnswer = {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly cookies: readonly string[];
  readonly body: Buffer;
};

export type GatewayOptions = {
  readonly rules: GatewayRules;
  readonly region: string;
  readonly account: string;
  readonly invoke: (functionArn: string, event: HttpApiEvent) => Promise<Invoked>;
};

export type HttpApiEvent =
  | APIGatewayProxyEventV2
  | APIGatewayProxyEventV2WithIAMAuthorizer
  | APIGatewayProxyEventV2WithJWTAuthorizer;

export type Gateway = (request: GatewayRequest) => Promise<GatewayAnswer>;

/** API Gateway's limit for a request. */
const MAX_BODY_BYTES = 10_485_760;

export function createGateway(options: GatewayOptions): Gateway {
  const { rules, invoke } = options;
  return async (request) => {
    const { method = "GET", path, body = "" } = request;
    const matched = matchRoute(rules.routes, method, path);
    if (matched === undefined) return ownAnswer(404, "Not Found");
    const allowed = authorize(request, matched.route.authorization, options);
    if ("refusal" in allowed) return allowed.refusal;
    if (Buffer.byteLength(body) > MAX_BODY_BYTES) return ownAnswer(413, "Request Entity Too Large");
    const event = toHttpApiEvent(request, { matched, authorizer: allowed.authorizer, options });
    const answered = invoke(matched.route.functionArn, event).then(toAnswer);
    return withDeadline(answered, matched.route.timeoutMs);
  };
}

async function withDeadline(answered: Promise<GatewayAnswer>, ms: number): Promise<GatewayAnswer> {
  const { promise: late, resolve } = Promise.withResolvers<GatewayAnswer>();
  const timer = setTimeout(() => resolve(ownAnswer(503, "Service Unavailable")), ms);
  try {
    return await Promise.race([answered, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What the gateway answers by itself. */
function ownAnswer(status: number, message: string, headers: Readonly<Record<string, string>> = {}): GatewayAnswer {
  const body = Buffer.from(JSON.stringify({ message }));
  return { status, headers: toHeaders({ "content-type": "application/json", ...headers }, body), cookies: [], body };
}

function toHeaders(headers: Readonly<Record<string, string>>, body: Buffer): ReadonlyMap<string, string> {
  const own = [
    ["content-length", String(body.length)],
    ["apigw-requestid", randomBytes(11).toString("base64")],
  ] as const;
  return new Map([...Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const), ...own]);
}

type Authorizer = APIGatewayProxyEventV2WithIAMAuthorizer["requestContext"]["authorizer"] | JwtAuthorizer | undefined;
type JwtAuthorizer = APIGatewayProxyEventV2WithJWTAuthorizer["requestContext"]["authorizer"];
type Allowed = { readonly authorizer: Authorizer } | { readonly refusal: GatewayAnswer };

function authorize(request: GatewayRequest, authorization: Authorization, options: GatewayOptions): Allowed {
  if (authorization.type === "NONE") return { authorizer: undefined };
  if (authorization.type === "AWS_IAM") return authorizeSigned(request, options);
  const { caller } = request;
  const problem = caller !== undefined && "claims" in caller ? findClaimProblem(caller, authorization) : "no token";
  if (problem !== undefined) {
    const challenge = `Bearer scope="" error="invalid_token" error_description="${problem}"`;
    return { refusal: ownAnswer(401, "Unauthorized", { "www-authenticate": challenge }) };
  }
  return authorizeScopes(caller, authorization);
}

function authorizeSigned({ method = "GET", path, caller }: GatewayRequest, options: GatewayOptions): Allowed {
  const { region, account, rules } = options;
  const called = `arn:aws:execute-api:${region}:${account}:${rules.apiId}/${rules.stage}/${method}${path}`;
  const signed = caller !== undefined && "userArn" in caller;
  if (!signed || !(caller.mayCall ?? ["*"]).some((pattern) => matches(pattern, called))) {
    return { refusal: ownAnswer(403, "Forbidden") };
  }
  const { userArn } = caller;
  const [, , , , accountId = ""] = userArn.split(":");
  const userId = `AIDA${Buffer.from(userArn).toString("hex").slice(-16).toUpperCase()}`;
  const identity = { accessKey: "ASIAEXAMPLEEXAMPLE00", accountId, callerId: userId, cognitoIdentity: null };
  return { authorizer: { iam: { ...identity, principalOrgId: "", userArn, userId } } };
}

type Jwt = Extract<Authorization, { type: "JWT" }>;

const Claims = z.object({
  iss: z.string().optional(),
  aud: z.union([z.string().transform((one) => [one]), z.array(z.string())]).optional(),
  client_id: z.string().optional(),
  exp: z.number(),
  nbf: z.number().optional(),
  iat: z.number().optional(),
  scope: z.string().optional(),
  scp: z.union([z.string(), z.array(z.string()).transform((many) => many.join(" "))]).optional(),
});

/** Undefined for a token that is good for this authorizer. */
function findClaimProblem({ claims }: JwtCaller, { issuer, audience }: Jwt): string | undefined {
  const read = Claims.safeParse(claims);
  if (!read.success) return "the token has malformed claims";
  const { iss, aud, client_id, exp, nbf, iat } = read.data;
  const now = Date.now() / 1000;
  if (iss !== issuer) return "the token does not have a valid issuer";
  // `client_id` counts only where there is no `aud`.
  const meant = aud ?? (client_id === undefined ? [] : [client_id]);
  if (!meant.some((each) => audience.includes(each))) return "the token does not have a valid audience";
  if (exp <= now) return "the token has expired";
  if ((nbf ?? 0) > now || (iat ?? 0) > now) return "the token is not valid yet";
  return undefined;
}

function authorizeScopes(caller: Caller | undefined, { scopes: wanted }: Jwt): Allowed {
  const claims = caller !== undefined && "claims" in caller ? caller.claims : {};
  const { scope, scp } = Claims.parse(claims);
  const granted = (scope ?? scp ?? "").split(" ").filter((each) => each !== "");
  if (wanted.length > 0 && !wanted.some((each) => granted.includes(each))) {
    const challenge = `Bearer scope="${wanted.join(" ")}" error="insufficient_scope"`;
    return { refusal: ownAnswer(403, "Forbidden", { "www-authenticate": challenge }) };
  }
  const texts = Object.entries(claims).map(([name, value]) => [name, toClaimText(value)] as const);
  const jwt = { claims: Object.fromEntries(texts), scopes: wanted.length === 0 ? null : granted };
  return { authorizer: { jwt } };
}

/** The gateway hands over texts only: `["a","b"]` as `[a b]`. */
function toClaimText(value: unknown): string {
  return Array.isArray(value) ? `[${value.join(" ")}]` : String(value);
}

type EventParts = { readonly matched: Matched; readonly authorizer: Authorizer; readonly options: GatewayOptions };

const SOURCE_IP = "192.0.2.7";

/** Payload format 2.0. */
function toHttpApiEvent(request: GatewayRequest, { matched, authorizer, options }: EventParts): HttpApiEvent {
  const { method = "GET", path, query = "", body = "" } = request;
  const { rules, region, account } = options;
  const domainName = `${rules.apiId}.execute-api.${region}.amazonaws.com`;
  const { cookie, ...headers } = toSentHeaders(request, domainName);
  const parameters = joinedQuery(query);
  const now = Date.now();
  return {
    version: "2.0",
    routeKey: matched.route.key,
    rawPath: path,
    rawQueryString: query,
    ...(cookie === undefined ? {} : { cookies: cookie.split(/; */) }),
    headers,
    ...(parameters === undefined ? {} : { queryStringParameters: parameters }),
    requestContext: {
      accountId: account,
      apiId: rules.apiId,
      ...(authorizer === undefined ? {} : { authorizer }),
      domainName,
      domainPrefix: rules.apiId,
      http: { method, path, protocol: "HTTP/1.1", sourceIp: SOURCE_IP, userAgent: headers["user-agent"] ?? "" },
      requestId: randomUUID(),
      routeKey: matched.route.key,
      stage: rules.stage,
      time: toLogTime(now),
      timeEpoch: now,
    },
    ...(Object.keys(matched.parameters).length === 0 ? {} : { pathParameters: { ...matched.parameters } }),
    ...toBody(body, headers["content-type"] ?? ""),
  };
}

function toSentHeaders({ headers = {}, body = "" }: GatewayRequest, host: string): Record<string, string> {
  const own = {
    host,
    "content-length": String(Buffer.byteLength(body)),
    "x-amzn-trace-id": toTraceId(),
    "x-forwarded-for": SOURCE_IP,
    "x-forwarded-port": "443",
    "x-forwarded-proto": "https",
  };
  return { "user-agent": "test", ...headers, ...own };
}

/** Undefined for none: the field is then left out. */
function joinedQuery(query: string): Record<string, string> | undefined {
  const parameters = new URLSearchParams(query);
  const names = [...new Set(parameters.keys())];
  return names.length === 0
    ? undefined
    : Object.fromEntries(names.map((name) => [name, parameters.getAll(name).join(",")]));
}

const TEXT_TYPE = /^(?:text\/|application\/(?:json|xml|javascript)\b)/i;

function toBody(body: string | Uint8Array, type: string): { body?: string; isBase64Encoded: boolean } {
  const bytes = Buffer.from(body);
  if (bytes.length === 0) return { isBase64Encoded: false };
  if (TEXT_TYPE.test(type)) return { body: bytes.toString("utf8"), isBase64Encoded: false };
  return { body: bytes.toString("base64"), isBase64Encoded: true };
}

/** `30/Nov/2026:12:00:00 +0000` */
function toLogTime(epochMs: number): string {
  const [, day, month, year, time] = new Date(epochMs).toUTCString().split(" ");
  return `${day}/${month}/${year}:${time} +0000`;
}

const Structured = z.strictObject({
  statusCode: z.int().min(100).max(599),
  headers: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).default({}),
  cookies: z.array(z.string()).default([]),
  body: z.string().default(""),
  isBase64Encoded: z.boolean().default(false),
});

/** An answer without a status is a body; one that is not as it must be, and a function that failed, are a 500. */
function toAnswer(invoked: Invoked): GatewayAnswer {
  if (!invoked.ok && invoked.error.errorType === "RequestEntityTooLargeException") {
    return ownAnswer(413, "Request Entity Too Large");
  }
  if (!invoked.ok) return ownAnswer(500, "Internal Server Error");
  const { value } = invoked;
  if (typeof value !== "object" || value === null || !("statusCode" in value)) {
    const body = Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
    return { status: 200, headers: toHeaders({ "content-type": "application/json" }, body), cookies: [], body };
  }
  const parsed = Structured.safeParse(value);
  if (!parsed.success) return ownAnswer(500, "Internal Server Error");
  const { statusCode: status, headers, cookies, isBase64Encoded } = parsed.data;
  const body = Buffer.from(parsed.data.body, isBase64Encoded ? "base64" : "utf8");
  const texts = Object.entries(headers).map(([name, each]) => [name, String(each)] as const);
  return {
    status,
    headers: toHeaders({ "content-type": "text/plain;charset=UTF-8", ...Object.fromEntries(texts) }, body),
    cookies,
    body,
  };
}
