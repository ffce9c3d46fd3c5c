import type { APIGatewayProxyEventV2 } from "aws-lambda";
import { type Outcome, refuse, succeed } from "../../contract/fault.ts";
import { parseStrictJson } from "../../contract/json.ts";
import { decodeUtf8 } from "../../contract/text.ts";

/** What an API Gateway event (payload 2.0) says, read with suspicion: a field may be absent, null or in any case. */

export type HttpEvent = Partial<APIGatewayProxyEventV2>;

const MAX_BODY_DEPTH = 64;

export function methodOf(event: HttpEvent): string {
  return valueAt(event, ["requestContext", "http", "method"]) ?? "GET";
}

export function pathOf(event: HttpEvent): string {
  return valueAt(event, ["rawPath"]) ?? "/";
}

/** The gateway's id, else the invocation's; one that would not fit a header is passed over. */
export function requestIdOf(event: HttpEvent, context: unknown): string {
  const ids = [valueAt(event, ["requestContext", "requestId"]), valueAt(context, ["awsRequestId"])];
  return ids.find((id) => id !== undefined && /^[\x21-\x7e]{1,128}$/.test(id)) ?? "unknown";
}

/** Value of a header, whatever the case of its name; API Gateway lower-cases names, other callers do not. */
export function headerOf(event: HttpEvent, name: string): string | undefined {
  const headers: unknown = event.headers;
  if (typeof headers !== "object" || headers === null) return undefined;
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name);
  return typeof found?.[1] === "string" ? found[1] : undefined;
}

export function hasBody(event: HttpEvent): boolean {
  return typeof event.body === "string" && event.body !== "";
}

/** The JSON body: 415 for another media type, 413 over `maxBytes`, 400 for anything that is not strict JSON. */
export function readJsonBody(event: HttpEvent, { maxBytes }: { readonly maxBytes: number }): Outcome<unknown> {
  const type = headerOf(event, "content-type");
  if (type === undefined || !isJsonType(type)) {
    const got = type === undefined ? "none" : JSON.stringify(type.slice(0, 80));
    return refuse("MEDIA_TYPE_UNSUPPORTED", `content-type application/json expected, got ${got}`);
  }
  const text = bodyText(event, maxBytes);
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

/** The size is known before anything is decoded, so a refusal costs nothing. */
function bodyText(event: HttpEvent, maxBytes: number): Outcome<string> {
  const body: unknown = event.body;
  if (typeof body !== "string") return succeed("");
  const encoded = event.isBase64Encoded === true;
  const size = Buffer.byteLength(body, encoded ? "base64" : "utf8");
  if (size > maxBytes) return refuse("PAYLOAD_TOO_LARGE", `the body has ${size} bytes, at most ${maxBytes} allowed`);
  if (encoded) return decodeBase64(body);
  return body.isWellFormed() ? succeed(body) : refuse("REQUEST_INVALID", "the body is not valid UTF-8");
}

/** Node skips what is not base64 without a word, which would run a job that nobody sent. */
function decodeBase64(body: string): Outcome<string> {
  const bytes = Buffer.from(body, "base64");
  if (bytes.toString("base64") !== body) return refuse("REQUEST_INVALID", "the body is not valid base64");
  const text = decodeUtf8(bytes);
  return text === undefined ? refuse("REQUEST_INVALID", "the body is not valid UTF-8") : succeed(text);
}

/**
 * Undefined for none. Refused is what a client can hardly have meant, since a key that is passed over runs a job twice.
 */
export function idempotencyKeyOf(event: HttpEvent): Outcome<string | undefined> {
  const key = headerOf(event, "idempotency-key");
  // A comma is how two headers arrive as one.
  if (key === undefined || /^[\x20-\x2b\x2d-\x7e]{1,255}$/.test(key)) return succeed(key);
  const message = "one Idempotency-Key of 1 to 255 printable ASCII characters without a comma; a UUID is a good one";
  return refuse("REQUEST_INVALID", message);
}

/** RFC 7240, 4.1: `respond-async`, among other preferences or alone. */
export function prefersAsync(event: HttpEvent): boolean {
  const preferences = (headerOf(event, "prefer") ?? "").split(",").map((preference) => preference.split(";")[0]);
  return preferences.some((preference) => preference?.trim().toLowerCase() === "respond-async");
}

/** Query parameters; API Gateway joins repeated ones with a comma, which then fits no schema. */
export function queryOf(event: HttpEvent): Readonly<Record<string, string>> {
  const query: unknown = event.queryStringParameters;
  if (typeof query !== "object" || query === null) return {};
  const strings = Object.entries(query).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return Object.fromEntries(strings);
}

/** Text at the end of a path of own properties: a key that the event lacks must not be found on a prototype. */
export function valueAt(value: unknown, keys: readonly string[]): string | undefined {
  const found = keys.reduce<unknown>((current, key) => {
    if (typeof current !== "object" || current === null) return undefined;
    return Object.getOwnPropertyDescriptor(current, key)?.value;
  }, value);
  return typeof found === "string" ? found : undefined;
}
