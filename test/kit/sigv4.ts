import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/**
 * Verifies Signature Version 4 as S3 does, from the wire form of a request: it shares no code with the signer under
 * test. Two forms: the `Authorization` header, and the query of a presigned URL.
 */

export type S3Credentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
};

export type SignedRequest = {
  readonly method: string;
  /** The request target as it came over the wire. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
};

/** An S3 error code, undefined when the signature holds. */
export type SignatureProblem =
  | "AccessDenied"
  | "AuthorizationQueryParametersError"
  | "InvalidAccessKeyId"
  | "InvalidToken"
  | "SignatureDoesNotMatch"
  | "XAmzContentSHA256Mismatch";

type Claim = {
  readonly credential: string;
  readonly date: string;
  readonly signedHeaders: string;
  readonly signature: string;
  readonly token: string | undefined;
  readonly payloadHash: string;
};

const ALGORITHM = "AWS4-HMAC-SHA256";
const MAX_EXPIRES_SECONDS = 604_800;
const MAX_SKEW_MS = 15 * 60_000;

export function findSignatureProblem(
  request: SignedRequest,
  credentials: S3Credentials,
  now: number,
): SignatureProblem | undefined {
  const { searchParams } = new URL(request.target, "http://s3.test");
  if (searchParams.has("X-Amz-Algorithm")) return findQueryProblem(request, searchParams, { credentials, now });
  return findHeaderProblem(request, credentials);
}

function findQueryProblem(
  request: SignedRequest,
  query: URLSearchParams,
  { credentials, now }: { readonly credentials: S3Credentials; readonly now: number },
): SignatureProblem | undefined {
  const field = (name: string) => query.get(`X-Amz-${name}`) ?? "";
  const seconds = Number(field("Expires"));
  const signedAt = parseDate(field("Date"));
  const wellFormed = /^\d+$/.test(field("Expires")) && seconds >= 1 && seconds <= MAX_EXPIRES_SECONDS;
  if (!wellFormed || signedAt === undefined || field("Algorithm") !== ALGORITHM) {
    return "AuthorizationQueryParametersError";
  }
  const problem = findClaimProblem(request, credentials, {
    credential: field("Credential"),
    date: field("Date"),
    signedHeaders: field("SignedHeaders"),
    signature: field("Signature"),
    token: query.get("X-Amz-Security-Token") ?? undefined,
    payloadHash: "UNSIGNED-PAYLOAD",
  });
  if (problem !== undefined) return problem;
  const valid = now >= signedAt - MAX_SKEW_MS && now < signedAt + seconds * 1000;
  return valid ? undefined : "AccessDenied";
}

function findHeaderProblem(request: SignedRequest, credentials: S3Credentials): SignatureProblem | undefined {
  const { headers } = request;
  const parts = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
    headers.authorization ?? "",
  );
  if (parts === null) return "AccessDenied";
  const [, credential = "", signedHeaders = "", signature = ""] = parts;
  const payloadHash = headers["x-amz-content-sha256"] ?? "";
  const hashed = payloadHash === "UNSIGNED-PAYLOAD" || payloadHash === sha256(request.body);
  if (!hashed) return "XAmzContentSHA256Mismatch";
  const date = headers["x-amz-date"] ?? "";
  const token = headers["x-amz-security-token"];
  return findClaimProblem(request, credentials, { credential, date, signedHeaders, signature, token, payloadHash });
}

function findClaimProblem(
  request: SignedRequest,
  credentials: S3Credentials,
  claim: Claim,
): SignatureProblem | undefined {
  const [accessKeyId, day = "", region = "", service = "", end] = claim.credential.split("/");
  if (accessKeyId !== credentials.accessKeyId) return "InvalidAccessKeyId";
  if (claim.token !== credentials.sessionToken) return "InvalidToken";
  const scoped = day === claim.date.slice(0, 8) && service === "s3" && end === "aws4_request";
  if (!scoped || !claim.signedHeaders.split(";").includes("host")) return "SignatureDoesNotMatch";
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = [ALGORITHM, claim.date, scope, sha256(toCanonicalRequest(request, claim))].join("\n");
  const key = [day, region, "s3", "aws4_request"].reduce<Buffer>(
    (secret, part) => hmac(secret, part),
    Buffer.from(`AWS4${credentials.secretAccessKey}`),
  );
  const wanted = hmac(key, text);
  const given = Buffer.from(claim.signature, "hex");
  return given.length === wanted.length && timingSafeEqual(given, wanted) ? undefined : "SignatureDoesNotMatch";
}

function toCanonicalRequest({ method, target, headers }: SignedRequest, claim: Claim): string {
  const [path = "", query = ""] = target.split("?", 2);
  const names = claim.signedHeaders.split(";");
  const lines = names.map((name) => `${name}:${(headers[name] ?? "").trim().replace(/ +/g, " ")}`);
  return [
    method,
    toCanonicalPath(path),
    toCanonicalQuery(query),
    ...lines,
    "",
    names.join(";"),
    claim.payloadHash,
  ].join("\n");
}

function toCanonicalPath(path: string): string {
  return path
    .split("/")
    .map((segment) => encode(decodeURIComponent(segment)))
    .join("/");
}

function toCanonicalQuery(query: string): string {
  return query
    .split("&")
    .filter((pair) => pair !== "" && !pair.startsWith("X-Amz-Signature="))
    .map((pair) => {
      const [name = "", value = ""] = pair.split("=", 2);
      return `${encode(decodeURIComponent(name))}=${encode(decodeURIComponent(value))}`;
    })
    .sort()
    .join("&");
}

/** RFC 3986: all but the unreserved characters. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** `20270101T120000Z` -> epoch ms. */
function parseDate(text: string): number | undefined {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text);
  if (parts === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
