import { describe, expect, test } from "vitest";
import { createGateway, type Gateway, type GatewayRequest, type HttpApiEvent } from "./kit/api.ts";
import { readGatewayRules } from "./kit/gateway-rules.ts";
import type { Invoked } from "./kit/lambda.ts";
import { jsonOf } from "./kit/service.ts";
import type { Resource } from "./kit/template.ts";

/** The gateway of the harness: what it lets through and what it answers itself is what the other tests rely on. */

const ISSUER = "https://issuer.test/pool";

const route = (RouteKey: string, more: Readonly<Record<string, unknown>> = {}): Resource => ({
  Type: "AWS::ApiGatewayV2::Route",
  Properties: { ApiId: "Api", RouteKey, Target: "integrations/Integration", ...more },
});
const WITH_TOKEN = { AuthorizationType: "JWT", AuthorizerId: "Authorizer" };

const API: readonly (readonly [string, Resource])[] = [
  ["Api", { Type: "AWS::ApiGatewayV2::Api", Properties: { ProtocolType: "HTTP" } }],
  [
    "Stage",
    { Type: "AWS::ApiGatewayV2::Stage", Properties: { ApiId: "Api", StageName: "$default", AutoDeploy: true } },
  ],
  [
    "Integration",
    {
      Type: "AWS::ApiGatewayV2::Integration",
      Properties: {
        ApiId: "Api",
        IntegrationType: "AWS_PROXY",
        IntegrationUri: "arn:function",
        PayloadFormatVersion: "2.0",
        TimeoutInMillis: 200,
      },
    },
  ],
  [
    "Authorizer",
    {
      Type: "AWS::ApiGatewayV2::Authorizer",
      Properties: {
        AuthorizerType: "JWT",
        IdentitySource: ["$request.header.Authorization"],
        JwtConfiguration: { Issuer: ISSUER, Audience: ["jobs", "console"] },
      },
    },
  ],
];

type Made = { readonly gateway: Gateway; readonly events: readonly HttpApiEvent[] };

/** Over the routes given; the function answers `invoked`, and after it the test's own promise when one is given. */
function makeGateway(
  routes: readonly Resource[],
  invoked: Invoked | Promise<Invoked> = { ok: true, value: { statusCode: 200 } },
): Made {
  const events: HttpApiEvent[] = [];
  const resources = new Map([...API, ...routes.map((each, index) => [`Route${index}`, each] as const)]);
  const rules = readGatewayRules(resources, { made: new Map() });
  const gateway = createGateway({
    rules,
    region: "eu-central-1",
    account: "000000000000",
    invoke: async (arn, event) => {
      expect(arn).toBe("arn:function");
      events.push(event);
      return invoked;
    },
  });
  return { gateway, events };
}

const soon = () => Math.floor(Date.now() / 1000) + 60;
const CLAIMS = () => ({ iss: ISSUER, aud: "jobs", exp: soon(), scope: "jobs:read jobs:write", sub: "s" });

describe("a route with a token", () => {
  const refused: readonly (readonly [string, () => GatewayRequest["caller"]])[] = [
    ["nobody", () => undefined],
    ["who signed with IAM instead", () => ({ userArn: "arn:aws:iam::000000000000:user/alice" })],
    ["another issuer's token", () => ({ claims: { ...CLAIMS(), iss: `${ISSUER}/` } })],
    ["a token without an issuer", () => ({ claims: { ...CLAIMS(), iss: undefined } })],
    ["a token for another audience", () => ({ claims: { ...CLAIMS(), aud: "else" } })],
    [
      "a token whose audience is another, whatever its client",
      () => ({ claims: { ...CLAIMS(), aud: "else", client_id: "jobs" } }),
    ],
    ["a token that is for nobody", () => ({ claims: { ...CLAIMS(), aud: undefined } })],
    ["a token that has expired", () => ({ claims: { ...CLAIMS(), exp: soon() - 61 } })],
    ["a token without an end", () => ({ claims: { ...CLAIMS(), exp: undefined } })],
    ["a token of the future", () => ({ claims: { ...CLAIMS(), nbf: soon() } })],
    ["a token that was issued in the future", () => ({ claims: { ...CLAIMS(), iat: soon() } })],
  ];

  test.each(refused)("answers 401 to %s, and asks no function", async (_, caller) => {
    const { gateway, events } = makeGateway([route("$default", WITH_TOKEN)]);
    const answer = await gateway({ path: "/", caller: caller() });
    expect({ status: answer.status, body: jsonOf(answer) }).toEqual({ status: 401, body: { message: "Unauthorized" } });
    expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer .*error="invalid_token"/);
    expect(events).toEqual([]);
  });

  const accepted = [
    { aud: ["else", "console"] },
    { aud: undefined, client_id: "console" },
    { scope: undefined, scp: ["jobs:write"] },
    { scope: undefined, scp: "other jobs:write" },
  ];

  test.each(accepted)("lets a token through that says %j", async (claims) => {
    const { gateway, events } = makeGateway([
      route("$default", { ...WITH_TOKEN, AuthorizationScopes: ["jobs:write"] }),
    ]);
    expect((await gateway({ path: "/", caller: { claims: { ...CLAIMS(), ...claims } } })).status).toBe(200);
    expect(events.length).toBe(1);
  });

  test("wants one of its scopes, and answers 403 without", async () => {
    const scoped = { ...WITH_TOKEN, AuthorizationScopes: ["jobs:admin", "jobs:write"] };
    const { gateway, events } = makeGateway([route("$default", scoped)]);
    const answer = await gateway({ path: "/", caller: { claims: { ...CLAIMS(), scope: "jobs:writes jobs:read" } } });
    expect({ status: answer.status, body: jsonOf(answer) }).toEqual({ status: 403, body: { message: "Forbidden" } });
    expect(events).toEqual([]);
  });

  test("hands the claims over as texts, and no scopes when it wants none", async () => {
    const { gateway, events } = makeGateway([route("$default", WITH_TOKEN)]);
    const claims = { ...CLAIMS(), groups: ["a", "b"], admin: true };
    await gateway({ path: "/", caller: { claims } });
    expect(events[0]).toMatchObject({
      requestContext: {
        authorizer: { jwt: { claims: { groups: "[a b]", admin: "true", exp: String(claims.exp) }, scopes: null } },
      },
    });
  });
});

describe("of several routes", () => {
  const ROUTES = ["GET /a/{x}", "ANY /a/b", "GET /a/b", "GET /a/{x}/c", "ANY /{rest+}", "$default"];

  test.each([
    { method: "GET", path: "/a/b", key: "GET /a/b", parameters: undefined },
    { method: "POST", path: "/a/b", key: "ANY /a/b", parameters: undefined },
    { method: "GET", path: "/a/b%20c", key: "GET /a/{x}", parameters: { x: "b c" } },
    { method: "GET", path: "/a/b/c", key: "GET /a/{x}/c", parameters: { x: "b" } },
    { method: "GET", path: "/a/b/d", key: "ANY /{rest+}", parameters: { rest: "a/b/d" } },
    { method: "GET", path: "/", key: "$default", parameters: undefined },
  ])("$method $path goes to $key", async ({ method, path, key, parameters }) => {
    const { gateway, events } = makeGateway(ROUTES.map((each) => route(each)));
    await gateway({ method, path });
    expect({ key: events[0]?.routeKey, parameters: events[0]?.pathParameters }).toEqual({ key, parameters });
  });

  test("none fits, and the answer is a 404 of the gateway's own", async () => {
    const { gateway } = makeGateway([route("GET /a")]);
    const answer = await gateway({ method: "POST", path: "/a" });
    expect({ status: answer.status, body: jsonOf(answer) }).toEqual({ status: 404, body: { message: "Not Found" } });
  });
});

describe("the answer", () => {
  test("is a 503 when the function takes longer than the integration waits", async () => {
    const never = Promise.withResolvers<Invoked>();
    const { gateway } = makeGateway([route("$default")], never.promise);
    const answer = await gateway({ path: "/" });
    expect({ status: answer.status, body: jsonOf(answer) }).toEqual({
      status: 503,
      body: { message: "Service Unavailable" },
    });
  });

  test.each<{ readonly what: string; readonly invoked: Invoked }>([
    { what: "failed", invoked: { ok: false, error: { errorType: "Runtime.ExitError", errorMessage: "x" } } },
    { what: "answered a status that is none", invoked: { ok: true, value: { statusCode: "200" } } },
    { what: "answered a body that is no text", invoked: { ok: true, value: { statusCode: 200, body: {} } } },
    {
      what: "answered a field that there is not",
      invoked: { ok: true, value: { statusCode: 200, multiValueHeaders: {} } },
    },
  ])("is a 500 when the function $what", async ({ invoked }) => {
    const { gateway } = makeGateway([route("$default")], invoked);
    const answer = await gateway({ path: "/" });
    expect({ status: answer.status, body: jsonOf(answer) }).toEqual({
      status: 500,
      body: { message: "Internal Server Error" },
    });
  });

  test("has the function's status, headers, cookies and bytes", async () => {
    const value = {
      statusCode: 201,
      headers: { "X-Count": 3 },
      cookies: ["a=b"],
      body: Buffer.of(0, 255).toString("base64"),
      isBase64Encoded: true,
    };
    const { gateway } = makeGateway([route("$default")], { ok: true, value });
    const { status, headers, cookies, body } = await gateway({ path: "/" });
    expect({ status, count: headers.get("x-count"), cookies, body: [...body] }).toEqual({
      status: 201,
      count: "3",
      cookies: ["a=b"],
      body: [0, 255],
    });
  });

  test("is what the function returned, as JSON, when it names no status", async () => {
    const { gateway } = makeGateway([route("$default")], { ok: true, value: { a: 1 } });
    const answer = await gateway({ path: "/" });
    expect({ status: answer.status, body: jsonOf(answer) }).toEqual({ status: 200, body: { a: 1 } });
  });
});

test("a body that is no text goes to the function as base64", async () => {
  const { gateway, events } = makeGateway([route("$default")]);
  await gateway({ method: "POST", path: "/", headers: { "content-type": "application/pdf" }, body: Buffer.of(0xff) });
  expect(events[0]).toMatchObject({ body: "/w==", isBase64Encoded: true });
});

test.each([
  ["a route", route("$default", { RequestParameters: {} })],
  ["a route with a custom authorizer", route("$default", { AuthorizationType: "CUSTOM" })],
  ["a route with a token and no authorizer", route("$default", { AuthorizationType: "JWT" })],
  ["a route to nowhere", route("$default", { Target: "integrations/Gone" })],
])("%s that is not known here is refused, and not taken for something else", (_, refused) => {
  expect(() => makeGateway([refused])).toThrow();
});
