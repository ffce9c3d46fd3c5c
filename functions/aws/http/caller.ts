import type { AuthMode, JwtAuth, RouteGroup } from "../../contract/auth.ts";
import { type Outcome, refuse, succeed } from "../../contract/fault.ts";
import { sha256Hex } from "../../contract/json.ts";
import { type HttpEvent, valueAt } from "./request.ts";

/**
 * Who asks, by what API Gateway found out, and whether they may ask this. The gateway refuses first; what it lets
 * through is looked at again, so that a route which lost its authorizer by a mistake opens nothing.
 */

/**
 * The id of the authenticated principal: a digest, so that neither a key nor a record holds an account number or a
 * person's name. `ACCESS_DENIED` when the gateway authenticated nobody, whatever the reason, and for a token without
 * the scope of the route's group.
 */
export function callerOf(event: HttpEvent, auth: AuthMode, group: RouteGroup): Outcome<string> {
  if (auth === "none") return succeed(toOwnerId("none"));
  return auth === "iam" ? ofIam(event) : ofToken(event, auth, group);
}

function ofIam(event: HttpEvent): Outcome<string> {
  const iam = ["requestContext", "authorizer", "iam"];
  // Everybody in an identity pool shares one role and one session name: only the identity tells them apart.
  const identity = textAt(event, [...iam, "cognitoIdentity", "identityId"]);
  if (identity !== undefined) return succeed(toOwnerId(`cognito ${identity}`));
  const userArn = textAt(event, [...iam, "userArn"]);
  if (userArn !== undefined) return succeed(toOwnerId(`iam ${userArn}`));
  return refuse("ACCESS_DENIED", "the request carries no authenticated principal; sign it with AWS credentials");
}

/** A subject is unique for its issuer alone (RFC 7519, 4.1.2). */
function ofToken(event: HttpEvent, { issuer, scopes }: JwtAuth, group: RouteGroup): Outcome<string> {
  const claims = ["requestContext", "authorizer", "jwt", "claims"];
  const subject = textAt(event, [...claims, "sub"]);
  if (textAt(event, [...claims, "iss"]) !== issuer || subject === undefined) {
    return refuse("ACCESS_DENIED", `the request carries no token of ${issuer} with a subject; send one as Bearer`);
  }
  const granted = [...listAt(event, [...claims, "scope"]), ...listAt(event, [...claims, "scp"])];
  if (granted.includes(scopes[group])) return succeed(toOwnerId(`jwt ${issuer} ${subject}`));
  return refuse("ACCESS_DENIED", `this wants a token with the scope ${scopes[group]}`);
}

/** A claim of words; the gateway writes one that was an array as `[a b]`. */
function listAt(event: HttpEvent, keys: readonly string[]): readonly string[] {
  return (textAt(event, keys) ?? "").replace(/^\[(.*)\]$/, "$1").split(/\s+/);
}

/** Undefined for an empty text, and for half a surrogate pair, which a digest could not tell from another half. */
function textAt(event: HttpEvent, keys: readonly string[]): string | undefined {
  const text = valueAt(event, keys) ?? "";
  return text !== "" && text.isWellFormed() ? text : undefined;
}

function toOwnerId(principal: string): string {
  return sha256Hex(principal).slice(0, 32);
}
