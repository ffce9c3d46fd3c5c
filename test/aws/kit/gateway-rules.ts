import * as z from "zod";
import { type Resolution, type Resources, resolve, resourcesOf } from "./template.ts";

/** Routes, authorizers and integrations of an HTTP API, as its template has them. */

export type Authorization =
  | { readonly type: "NONE" }
  | { readonly type: "AWS_IAM" }
  | {
      readonly type: "JWT";
      readonly issuer: string;
      readonly audience: readonly string[];
      readonly scopes: readonly string[];
    };

export type Route = {
  /** `POST /v1/jobs`, or `$default` */
  readonly key: string;
  readonly authorization: Authorization;
  readonly functionArn: string;
  readonly timeoutMs: number;
};

export type GatewayRules = { readonly apiId: string; readonly stage: string; readonly routes: readonly Route[] };

const Api = z.object({ ProtocolType: z.literal("HTTP") });
const Stage = z.object({ ApiId: z.string(), StageName: z.string(), AutoDeploy: z.literal(true) });
const RouteProperties = z.strictObject({
  ApiId: z.string(),
  RouteKey: z.string(),
  Target: z.string().startsWith("integrations/"),
  AuthorizationType: z.enum(["NONE", "AWS_IAM", "JWT"]).default("NONE"),
  AuthorizerId: z.string().optional(),
  AuthorizationScopes: z.array(z.string()).default([]),
});
const Integration = z.strictObject({
  ApiId: z.string(),
  IntegrationType: z.literal("AWS_PROXY"),
  IntegrationUri: z.string(),
  PayloadFormatVersion: z.literal("2.0"),
  TimeoutInMillis: z.int().min(50).max(30_000).default(30_000),
});
const Authorizer = z.object({
  AuthorizerType: z.literal("JWT"),
  IdentitySource: z.tuple([z.literal("$request.header.Authorization")]),
  JwtConfiguration: z.strictObject({ Issuer: z.url({ protocol: /^https$/ }), Audience: z.array(z.string()).min(1) }),
});

/** Throws unless there is one API with one stage, and for everything in it that is not known here. */
export function readGatewayRules(resources: Resources, resolution: Resolution): GatewayRules {
  const all = (type: string) =>
    resourcesOf(resources, `AWS::ApiGatewayV2::${type}`).map(
      ([id, properties]) => [resolution.made.get(id)?.ref ?? id, resolve(properties, resolution)] as const,
    );
  const [[apiId = "", api] = [], ...apis] = all("Api");
  const [[, stage] = [], ...stages] = all("Stage");
  if (apis.length + stages.length > 0) throw new Error("one API with one stage expected");
  Api.parse(api);
  const integrations = new Map(all("Integration").map(([id, each]) => [id, Integration.parse(each)]));
  const authorizers = new Map(all("Authorizer").map(([id, each]) => [id, Authorizer.parse(each)]));
  const routes = all("Route").map(([, properties]): Route => {
    const route = RouteProperties.parse(properties);
    const integration = integrations.get(route.Target.replace("integrations/", ""));
    if (integration === undefined) throw new Error(`${route.RouteKey} has no integration`);
    const { IntegrationUri, TimeoutInMillis } = integration;
    const authorization = toAuthorization(route, authorizers);
    return { key: route.RouteKey, authorization, functionArn: IntegrationUri, timeoutMs: TimeoutInMillis };
  });
  return { apiId, stage: Stage.parse(stage).StageName, routes };
}

function toAuthorization(
  {
    RouteKey,
    AuthorizationType: type,
    AuthorizerId = "",
    AuthorizationScopes: scopes,
  }: z.infer<typeof RouteProperties>,
  authorizers: ReadonlyMap<string, z.infer<typeof Authorizer>>,
): Authorization {
  if (type !== "JWT") return { type };
  const authorizer = authorizers.get(AuthorizerId);
  if (authorizer === undefined) throw new Error(`${RouteKey} has no authorizer`);
  const { Issuer: issuer, Audience: audience } = authorizer.JwtConfiguration;
  return { type, issuer, audience, scopes };
}

export type Matched = { readonly route: Route; readonly parameters: Readonly<Record<string, string>> };

/** The most specific route wins, as API Gateway chooses: written segments before variables, greedy ones last. */
export function matchRoute(routes: readonly Route[], method: string, path: string): Matched | undefined {
  const found = routes.flatMap((route) => {
    const [verb = "", template = ""] = route.key.split(" ");
    const parameters = verb === method || verb === "ANY" ? matchPath(template, path) : undefined;
    return parameters === undefined ? [] : [{ route, parameters, rank: rankOf(verb, template) }];
  });
  const [best] = found.sort((a, b) => (a.rank < b.rank ? -1 : 1));
  if (best !== undefined) return best;
  const otherwise = routes.find(({ key }) => key === "$default");
  return otherwise === undefined ? undefined : { route: otherwise, parameters: {} };
}

const segmentsOf = (path: string) => path.split("/").slice(1);

function matchPath(template: string, path: string): Readonly<Record<string, string>> | undefined {
  const [wanted, given] = [segmentsOf(template), segmentsOf(path)];
  const greedy = wanted.at(-1)?.endsWith("+}") === true;
  if (greedy ? given.length < wanted.length : given.length !== wanted.length) return undefined;
  const parameters: [string, string][] = [];
  for (const [index, segment] of wanted.entries()) {
    const [, name, plus] = /^\{(.+?)(\+?)\}$/.exec(segment) ?? [];
    const value = plus === "+" ? given.slice(index).join("/") : (given[index] ?? "");
    if (name === undefined ? segment !== value : value === "") return undefined;
    if (name !== undefined) parameters.push([name, decodeSafely(value)]);
  }
  return Object.fromEntries(parameters);
}

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Sorts before the rank of a less specific one. */
function rankOf(verb: string, template: string): string {
  const kinds = segmentsOf(template).map((segment) =>
    segment.endsWith("+}") ? "2" : segment.startsWith("{") ? "1" : "0",
  );
  return `${kinds.join("")}${verb === "ANY" ? "1" : "0"}`;
}
