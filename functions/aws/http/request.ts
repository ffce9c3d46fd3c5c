import type { APIGatewayProxyEventV2 } from "aws-lambda";
import { type Outcome, refuse, succeed } from "../../contract/fault.ts";
import { parseStrictJson, sha256Hex } from "../../contract/json.ts";
import type { AuthMode } from "../../contract/settings.ts";

/** What an API Gateway event (payload 2.0) says, read with suspicion: a field may be absent, null or in any case. */

export type HttpEvent = APIGatewayProxyEventV2;

const MAX_BODY_DEPTH = 64;

/** Value of a header, whatever the case of its name; API Gateway lower-cases names, other callers do not. */
export function headerOf(event: HttpEvent, name: string): string | undefined {
  const headers: unknown = event.headers;
  if (typeof headers !== "object" || headers === null) return undefined;
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name);
  return typeof found?.[1] === "string" ? found[1] : undefined;
}

/** The JSON body: 415 for another media type, 413 over `maxBytes`, 400 for anything that is not strict JSON. */
export function readJsonBody(event: HttpEvent, { maxBytes }: { readonly maxBytes: number }): Outcome<unknown> {
  const type = headerOf(event, "content-type");
  if (type === undefined || !isJsonType(type)) {
    const got = type === undefined ? "none" : JSON.stringify(type.slice(0, 80));
    return refuse("MEDIA_TYPE_UNSUPPORTED", `content-type application/json expected, got ${got}`);
  }
  const bytes = bodyBytes(event);
  if (bytes.length > maxBytes) {
    return refuse("PAYLOAD_TOO_LARGE", `the body has ${bytes.length} bytes, at most ${maxBytes} allowed`);
  }
  const text = decodeUtf8(bytes);
  return text.ok ? parseStrictJson(text.value, { maxDepth: MAX_BODY_DEPTH }) : text;
}

function isJsonType(type: string): boolean {
  const [essence = "", ...parameters] = type
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  const charset = parameters.find((parameter) => parameter.startsWith("charset="))?.slice("charset=".length);
  const isJson = essence === "application/json" || /^application\/[a-z0-9.-]+\+json$/.test(essence);
  return isJson && (charset === undefined || /^"?utf-?8"?$/.test(charset));
}

function bodyBytes(event: HttpEvent): Uint8Array {
  const body: unknown = event.body;
  if (typeof body !== "string") return new Uint8Array();
  return Buffer.from(body, event.isBase64Encoded === true ? "base64" : "utf8");
}

function decodeUtf8(bytes: Uint8Array): Outcome<string> {
  try {
    return succeed(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (error) {
    return refuse("REQUEST_INVALID", "the body is not valid UTF-8", { cause: error });
  }
}

/** Query parameters; API Gateway joins repeated ones with a comma, which then fits no schema. */
export function queryOf(event: HttpEvent): Readonly<Record<string, string>> {
  const query: unknown = event.queryStringParameters;
  if (typeof query !== "object" || query === null) return {};
  const strings = Object.entries(query).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return Object.fromEntries(strings);
}

/**
 * The id of the authenticated principal: a digest, so that neither a key nor a record holds an account number or a
 * person's name. Refused when the gateway authenticated nobody, whatever the reason.
 */
export function ownerOf(event: HttpEvent, auth: AuthMode): Outcome<string> {
  if (auth === "none") return succeed(toOwnerId("none"));
  const iam = readPath(event, ["requestContext", "authorizer", "iam", "userArn"]);
  if (typeof iam === "string" && iam !== "") return succeed(toOwnerId(`iam ${iam}`));
  return refuse("ACCESS_DENIED", "the request carries no authenticated principal; sign it with AWS credentials");
}

function toOwnerId(principal: string): string {
  return sha256Hex(principal).slice(0, 32);
}

function readPath(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((current, key) => {
    if (typeof current !== "object" || current === null) return undefined;
    return Object.entries(current).find(([name]) => name === key)?.[1];
  }, value);
}
