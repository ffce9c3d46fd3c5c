import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AwsCredentials, createRequestSigner, regionOfEndpoint } from "../../../functions/aws/sign-request.ts";
import { createApiClient } from "../../../local/api-client.ts";
import "../../kit/to-fail.ts";

const CREDENTIALS: AwsCredentials = { accessKeyId: "AKIAEXAMPLE", secretAccessKey: "secret", sessionToken: "token" };
const REGION = "eu-central-1";

type Received = { readonly request: IncomingMessage; readonly body: Buffer };

const sha256 = (content: string | Buffer) => createHash("sha256").update(content).digest("hex");
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
const encode = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);

/** Signature Version 4 as the documentation spells it out, from the wire form: no code of the signer's is used. */
function isSignedBy({ secretAccessKey, accessKeyId }: AwsCredentials, { request, body }: Received): boolean {
  const { authorization = "" } = request.headers;
  const [, key, scope = "", names = "", signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      authorization,
    ) ?? [];
  const [day = "", region = "", service = "", end = ""] = scope.split("/");
  const [path = "", query = ""] = (request.url ?? "").split("?");
  const pairs = [...new URLSearchParams(query)].map(([name, value]) => `${encode(name)}=${encode(value)}`);
  const canonical = [
    request.method,
    path.split("/").map(encode).join("/"),
    pairs.sort().join("&"),
    ...names.split(";").map((name) => `${name}:${String(request.headers[name]).trim()}`),
    "",
    names,
    sha256(body),
  ].join("\n");
  const date = String(request.headers["x-amz-date"]);
  const text = ["AWS4-HMAC-SHA256", date, scope, sha256(canonical)].join("\n");
  const signing = [day, region, service, end].reduce<string | Buffer>(
    (secret, part) => hmac(secret, part),
    `AWS4${secretAccessKey}`,
  );
  const wanted = hmac(signing, text).toString("hex");
  const covers = ["host", "x-amz-date"].every((name) => names.split(";").includes(name));
  const inScope = date.startsWith(day) && region === REGION && service === "execute-api" && end === "aws4_request";
  return key === accessKeyId && wanted === signature && covers && inScope;
}

async function startRecorder() {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ request, body: Buffer.concat(chunks) });
    response.end('{"ok":true}');
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  const address = server.address();
  return { received, baseUrl: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}` };
}

describe("a signed request", () => {
  test.each([
    ["GET", "/v1/health", undefined],
    ["GET", "/v1/tools?format=mcp", undefined],
    ["GET", "/v1/jobs?limit=20&after=0&a=b+c%20d", undefined],
    ["GET", "/v1/jobs/a%25b%2Fc", undefined],
    ["POST", "/v1/jobs", { calls: [{ tool: "create_pdf@1", arguments: { body: "é €" } }] }],
    ["DELETE", "/v1/jobs/x/artifacts/a1", undefined],
  ])("holds before a verifier that reads the wire: %s %s", async (method, path, body) => {
    const { baseUrl, received } = await startRecorder();
    const sign = createRequestSigner({ region: REGION, credentials: async () => CREDENTIALS });
    const answer = await createApiClient({ baseUrl, sign }).send(method, path, body);
    expect(answer).toEqual({ status: 200, body: { ok: true } });
    const [only] = received;
    if (only === undefined) throw new Error("no request came");
    expect(only.request.headers).toMatchObject({ "x-amz-security-token": "token" });
    expect(isSignedBy(CREDENTIALS, only)).toBe(true);
    expect(isSignedBy({ ...CREDENTIALS, secretAccessKey: "other" }, only)).toBe(false);
    expect(isSignedBy(CREDENTIALS, { ...only, body: Buffer.from("changed") })).toBe(false);
    if (body !== undefined) {
      expect(JSON.parse(only.body.toString())).toEqual(body);
      expect(only.request.headers).toMatchObject({
        "content-type": "application/json",
        "content-length": String(only.body.length),
      });
    }
  });

  test("covers the content type and the session token", async () => {
    const { baseUrl, received } = await startRecorder();
    const sign = createRequestSigner({ region: REGION, credentials: async () => CREDENTIALS });
    await createApiClient({ baseUrl, sign }).send("POST", "/v1/jobs", {});
    const signed = /SignedHeaders=([^,]+)/.exec(received[0]?.request.headers.authorization ?? "")?.[1]?.split(";");
    expect(signed).toEqual(expect.arrayContaining(["content-type", "host", "x-amz-date", "x-amz-security-token"]));
  });

  test("is refused, and not sent, when no credentials can be had", async () => {
    const { baseUrl, received } = await startRecorder();
    const sign = createRequestSigner({
      region: REGION,
      credentials: () => Promise.reject(new Error("none in the chain")),
    });
    await expect(createApiClient({ baseUrl, sign }).send("GET", "/v1/health")).rejects.toFail("ACCESS_DENIED");
    expect(received).toEqual([]);
  });
});

test.each([
  ["abc123.execute-api.eu-central-1.amazonaws.com", "eu-central-1"],
  ["abc123.execute-api.us-gov-west-1.amazonaws.com", "us-gov-west-1"],
  ["abc123.execute-api-fips.us-east-1.amazonaws.com", "us-east-1"],
  ["abc123.execute-api.cn-north-1.amazonaws.com.cn", "cn-north-1"],
  ["api.example.com", undefined],
  ["abc123.execute-api.eu-central-1.amazonaws.com.evil.example", undefined],
  ["evil.example/abc.execute-api.eu-central-1.amazonaws.com", undefined],
  ["127.0.0.1", undefined],
])("the region of %s is %s", (hostname, region) => {
  expect(regionOfEndpoint(hostname)).toBe(region);
});
