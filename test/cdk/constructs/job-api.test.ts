import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { ROUTES } from "../../../functions/contract/api.ts";
import { type Properties, resourcesOf, stackMaker, toWords } from "../kit/stack-template.ts";

const makeStack = stackMaker();
const ISSUER = "https://tokens.acme.test/pool";
const jwt = (scopes = {}) => ({ issuer: ISSUER, audience: ["console", "agents"], scopes });
const toTemplate = (auth: unknown) => Template.fromStack(makeStack({ settings: { auth } }));

/** What each route asks of its caller, by its key. */
function askedBy(template: Template): ReadonlyMap<string, Properties> {
  const routes = [...resourcesOf(template, "AWS::ApiGatewayV2::Route").values()];
  return new Map(routes.map(({ RouteKey, ...properties }) => [RouteKey, properties]));
}

describe("with tokens", () => {
  const template = toTemplate(jwt({ operate: "refresh:now" }));
  const SCOPES = {
    run: "skillbroker/run",
    read: "skillbroker/read",
    notify: "skillbroker/notify",
    operate: "refresh:now",
  };

  test("the API takes those of the issuer for its audience, from the header where clients put them", () => {
    const [authorizer, ...others] = resourcesOf(template, "AWS::ApiGatewayV2::Authorizer").values();
    expect(others).toEqual([]);
    expect(authorizer).toMatchObject({
      AuthorizerType: "JWT",
      IdentitySource: ["$request.header.Authorization"],
      JwtConfiguration: { Issuer: ISSUER, Audience: ["console", "agents"] },
    });
  });

  test("each route wants the scope of its group, and that alone", () => {
    const asked = askedBy(template);
    for (const { method, path, group } of ROUTES) {
      const { AuthorizationType, AuthorizationScopes } = asked.get(`${method} ${path}`);
      expect({ AuthorizationType, AuthorizationScopes }, path).toEqual({
        AuthorizationType: "JWT",
        AuthorizationScopes: [SCOPES[group]],
      });
    }
  });

  test("what is no route wants a token too, with any of the scopes", () => {
    const { AuthorizationType, AuthorizationScopes, AuthorizerId } = askedBy(template).get("$default");
    expect({ AuthorizationType, AuthorizationScopes }).toEqual({
      AuthorizationType: "JWT",
      AuthorizationScopes: Object.values(SCOPES),
    });
    expect(toWords(AuthorizerId)).toMatch(/Jwt$/);
  });

  test("no route is without an authorizer", () => {
    expect(askedBy(template).size).toBe(ROUTES.length + 1);
    for (const { AuthorizerId } of askedBy(template).values()) expect(AuthorizerId).toBeDefined();
  });
});

test.each(["iam", "none"])("with %s no route asks for a scope, which nobody but a token has", (auth) => {
  const asked = askedBy(toTemplate(auth));
  expect(asked.size).toBe(ROUTES.length + 1);
  for (const { AuthorizationScopes } of asked.values()) expect(AuthorizationScopes).toBeUndefined();
});

describe("how often it may be called", () => {
  const throttleOf = (auth: unknown) =>
    [...resourcesOf(toTemplate(auth), "AWS::ApiGatewayV2::Stage").values()].map(
      ({ DefaultRouteSettings }) => DefaultRouteSettings,
    );

  test("is bounded where anybody may call", () => {
    expect(throttleOf("none")).toEqual([{ ThrottlingRateLimit: 20, ThrottlingBurstLimit: 40 }]);
  });

  test("is the account's matter where callers are known", () => {
    expect([...throttleOf("iam"), ...throttleOf(jwt())]).toEqual([undefined, undefined]);
  });
});

test("one permission lets the API call the function, by every route and by none", () => {
  const permissions = [...resourcesOf(toTemplate("iam"), "AWS::Lambda::Permission").values()];
  expect(permissions.map(({ SourceArn }) => toWords(SourceArn))).toEqual([
    "arn:<Partition>:execute-api:<Region>:<AccountId>:Api/*/*",
  ]);
});

test("the API is called as the stack is, so that it is told from others", () => {
  const [api] = resourcesOf(toTemplate("iam"), "AWS::ApiGatewayV2::Api").values();
  expect(api.Name).toBe("SkillBroker");
});

test("no group of routes holds what another one must be granted for", () => {
  const groups = new Map(ROUTES.map(({ operation, group }) => [operation, group]));
  const of = (group: string) => [...groups].filter(([, each]) => each === group).map(([operation]) => operation);
  expect(of("operate")).toEqual(["refresh"]);
  expect(of("notify")).toEqual(["notify"]);
  for (const { method, group } of ROUTES) expect(method === "GET").toBe(group === "read");
});
