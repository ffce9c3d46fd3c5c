import { createServer, type IncomingMessage } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { toHttpEvent } from "../../local/http-event.ts";
import { exchangeRaw } from "../kit/raw-http.ts";

const NOW = Date.parse("2020-03-12T19:03:58.390Z");

/** The event of a request as it came over a socket. */
async function eventOf(lines: readonly string[], target: { path: string; query: string }, body = Buffer.alloc(0)) {
  let seen: IncomingMessage | undefined;
  const server = createServer((request, response) => {
    seen = request;
    response.end();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  await exchangeRaw(url, [...lines, "Connection: close", "", ""].join("\r\n"));
  if (seen === undefined) throw new Error("no request came");
  return toHttpEvent({ request: seen, target, body, requestId: "id", now: NOW });
}

test("an event has the shape that API Gateway documents for payload 2.0", async () => {
  const lines = [
    "POST /my/path?parameter1=value1&parameter1=value2&parameter2=value HTTP/1.1",
    "Host: id.execute-api.us-east-1.amazonaws.com",
    "User-Agent: agent",
    "Header1: value1",
    "Header2: value1",
    "Header2: value2",
    "Content-Type: text/plain",
    "Cookie: cookie1=a; cookie2=b",
  ];
  const target = { path: "/my/path", query: "parameter1=value1&parameter1=value2&parameter2=value" };
  expect(await eventOf(lines, target, Buffer.from("Hello from Lambda"))).toEqual({
    version: "2.0",
    routeKey: "$default",
    rawPath: "/my/path",
    rawQueryString: "parameter1=value1&parameter1=value2&parameter2=value",
    cookies: ["cookie1=a", "cookie2=b"],
    headers: {
      host: "id.execute-api.us-east-1.amazonaws.com",
      "user-agent": "agent",
      header1: "value1",
      header2: "value1,value2",
      "content-type": "text/plain",
      connection: "close",
    },
    queryStringParameters: { parameter1: "value1,value2", parameter2: "value" },
    requestContext: {
      accountId: "000000000000",
      apiId: "local",
      authorizer: { iam: expect.objectContaining({ userArn: "arn:aws:iam::000000000000:user/local" }) },
      domainName: "id.execute-api.us-east-1.amazonaws.com",
      domainPrefix: "local",
      http: { method: "POST", path: "/my/path", protocol: "HTTP/1.1", sourceIp: "127.0.0.1", userAgent: "agent" },
      requestId: "id",
      routeKey: "$default",
      stage: "$default",
      time: "12/Mar/2020:19:03:58 +0000",
      timeEpoch: NOW,
    },
    body: "Hello from Lambda",
    isBase64Encoded: false,
  });
});

test("what a request does not have, its event does not have", async () => {
  const event = await eventOf(["GET / HTTP/1.1", "Host: x"], { path: "/", query: "" });
  for (const name of ["cookies", "queryStringParameters", "body", "pathParameters"])
    expect(event).not.toHaveProperty(name);
  expect(event).toMatchObject({ rawQueryString: "", isBase64Encoded: false });
});

test("a content type that was sent twice arrives as both, so that none of them is believed", async () => {
  const lines = ["GET / HTTP/1.1", "Host: x", "Content-Type: application/json", "Content-Type: text/plain"];
  expect((await eventOf(lines, { path: "/", query: "" })).headers["content-type"]).toBe("application/json,text/plain");
});

test.each([
  ["application/json", Buffer.from('{"a":"é"}'), false],
  ["application/json; charset=utf-8", Buffer.from("\ufeff{}"), false],
  ["application/vnd.acme+json", Buffer.from("{}"), false],
  ["application/json", Buffer.from([0x22, 0xff, 0x22]), true],
  ["application/octet-stream", Buffer.from("{}"), true],
  ["application/jsonp", Buffer.from("{}"), true],
])("a body of type %s keeps its bytes (%j, base64: %j)", async (type, body, encoded) => {
  const event = await eventOf(["GET / HTTP/1.1", "Host: x", `Content-Type: ${type}`], { path: "/", query: "" }, body);
  expect(event.isBase64Encoded).toBe(encoded);
  expect(Buffer.from(event.body ?? "", encoded ? "base64" : "utf8")).toEqual(body);
});

test("keys that reach for a prototype are ordinary names", async () => {
  const event = await eventOf(["GET / HTTP/1.1", "Host: x", "__proto__: y"], {
    path: "/",
    query: "__proto__=1&constructor=2",
  });
  expect(Object.entries(event.queryStringParameters ?? {})).toEqual([
    ["__proto__", "1"],
    ["constructor", "2"],
  ]);
  expect(Object.getOwnPropertyNames(event.headers)).toContain("__proto__");
});
