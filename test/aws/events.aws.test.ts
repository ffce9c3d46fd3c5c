import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { ReceiveMessageCommand, SendMessageCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { toHttpEvent } from "../../local/http-event.ts";
import { toSqsEvent as toLocalSqsEvent } from "../../local/queue-event.ts";
import { httpEvent } from "../kit/http-events.ts";
import { createTestQueue, createTestSqsClient } from "../kit/sqs-client.ts";
import { createGateway, type GatewayRequest, type HttpApiEvent } from "./kit/api.ts";
import { startQueueing } from "./kit/emulators.ts";
import { compareEvents } from "./kit/event-shape.ts";
import type { Route } from "./kit/gateway-rules.ts";
import { toScheduledEvent } from "./kit/schedule.ts";
import { toSqsEvent } from "./kit/sqs-event.ts";

/** Events that are built here, against those that AWS documents: a test that passes on others shows nothing. */

const SAME = { missing: [], extra: [], differing: [] };

function readFixture(name: string): unknown {
  return JSON.parse(readFileSync(join(import.meta.dirname, "fixtures", `${name}.json`), "utf8"));
}

/** What the gateway hands to the function behind the only route. */
async function gatewayEvent(
  request: GatewayRequest,
  route: Pick<Route, "key" | "authorization">,
): Promise<HttpApiEvent> {
  const handed = Promise.withResolvers<HttpApiEvent>();
  const gateway = createGateway({
    rules: { apiId: "api1", stage: "$default", routes: [{ ...route, functionArn: "arn", timeoutMs: 1000 }] },
    region: "eu-central-1",
    account: "000000000000",
    invoke: async (_, event) => {
      handed.resolve(event);
      return { ok: true, value: {} };
    },
  });
  const { status } = await gateway(request);
  expect(status).toBe(200);
  return handed.promise;
}

const POSTED = {
  method: "POST",
  path: "/v1/jobs",
  query: "note=one&note=two&plain=yes",
  headers: { "content-type": "application/json", cookie: "theme=dark; seen=1", "user-agent": "probe/1.0" },
  body: '{"calls":[]}',
} as const;

describe("a request to an HTTP API, payload 2.0", () => {
  test("signed with IAM is as documented when the harness's gateway builds it", async () => {
    const caller = { userArn: "arn:aws:iam::210987654321:user/probe" };
    const event = await gatewayEvent(
      { ...POSTED, caller },
      { key: "POST /v1/jobs", authorization: { type: "AWS_IAM" } },
    );
    expect(compareEvents(event, readFixture("http-api-iam"))).toEqual(SAME);
    expect(event).toMatchObject({
      cookies: ["theme=dark", "seen=1"],
      queryStringParameters: { note: "one,two", plain: "yes" },
      body: POSTED.body,
    });
  });

  test("with a token is as documented when the harness's gateway builds it", async () => {
    const claims = { iss: "https://issuer.test/", aud: "jobs", exp: Date.now() / 1000 + 60, scope: "jobs:read" };
    const authorization = { type: "JWT", issuer: claims.iss, audience: ["jobs"], scopes: ["jobs:read"] } as const;
    const request = { path: "/v1/jobs/j1", headers: { authorization: "Bearer t" }, caller: { claims } };
    const event = await gatewayEvent(request, { key: "GET /v1/jobs/{job_id}", authorization });
    expect(compareEvents(event, readFixture("http-api-jwt"))).toEqual(SAME);
  });

  test("is as documented when the server of one machine builds it", async () => {
    const event = await localEvent();
    expect(compareEvents(event, readFixture("http-api-iam"))).toEqual(SAME);
  });

  test("has no other fields than documented, and of the same kinds, when the tests' own kit builds it", () => {
    const { missing, ...rest } = compareEvents(
      httpEvent({ method: "POST", path: "/v1/jobs", query: { plain: "yes" }, headers: { host: "a" }, body: "{}" }),
      readFixture("http-api-iam"),
    );
    expect(rest).toEqual({ extra: [], differing: [] });
    // What no test of it needs: a caller's further ids, and cookies.
    const left = missing.filter((path) => !/^\.(cookies|requestContext\.authorizer\.iam\.)/.test(path));
    expect(left).toEqual([]);
  });
});

/** A real request, through the server that people run on one machine. */
async function localEvent(): Promise<unknown> {
  const arrived = Promise.withResolvers<IncomingMessage>();
  const server = createServer((request, response) => {
    arrived.resolve(request);
    response.end();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}${POSTED.path}?${POSTED.query}`;
  await fetch(url, { method: "POST", headers: POSTED.headers, body: POSTED.body });
  server.close();
  return toHttpEvent({
    request: await arrived.promise,
    target: { path: POSTED.path, query: POSTED.query },
    body: Buffer.from(POSTED.body),
    requestId: "r1",
    now: Date.now(),
  });
}

describe("a batch from a queue", () => {
  let queueing: Awaited<ReturnType<typeof startQueueing>>;
  let client: SQSClient;

  beforeAll(async () => {
    queueing = await startQueueing();
    client = createTestSqsClient(queueing.url);
  });
  afterAll(() => queueing.close());

  /** What a queue gives of one message, with everything that it knows of it. */
  async function throughQueue(fifo: boolean) {
    const settings = { fifo, delaySeconds: 0, visibilitySeconds: 30, maxReceives: 5 };
    const { url: QueueUrl } = await createTestQueue(client, settings);
    const ordering = fifo ? { MessageGroupId: "g", MessageDeduplicationId: "d" } : {};
    const MessageAttributes = {
      origin: { DataType: "String", StringValue: "probe" },
      mark: { DataType: "Binary", BinaryValue: Buffer.of(0, 1, 2) },
    };
    const attributes = fifo ? {} : { MessageAttributes };
    await client.send(new SendMessageCommand({ QueueUrl, MessageBody: "body", ...ordering, ...attributes }));
    const all = { MessageSystemAttributeNames: ["All" as const], MessageAttributeNames: ["All"] };
    const { Messages = [] } = await client.send(new ReceiveMessageCommand({ QueueUrl, ...all }));
    return Messages;
  }

  const SOURCE = { arn: "arn:aws:sqs:eu-central-1:000000000000:q", region: "eu-central-1" };

  test.each([
    { name: "sqs-standard", fifo: false },
    { name: "sqs-fifo", fifo: true },
  ])("is as documented when the harness builds it: $name", async ({ name, fifo }) => {
    const event = toSqsEvent(await throughQueue(fifo), SOURCE);
    expect(compareEvents(event, readFixture(name))).toEqual(SAME);
    expect(event.Records[0]?.md5OfBody).toBe("841a2d689ad86bd1611447453c22c6fc");
  });

  const MESSAGE = { id: "m", receipt: "r", body: "body", sentAt: 1, firstReceivedAt: 2, receiveCount: 1 } as const;

  test("is as documented when one machine builds it, but for attributes of the sender, of which there are none", () => {
    const { missing, ...rest } = compareEvents(toLocalSqsEvent([MESSAGE], "q"), readFixture("sqs-standard"));
    expect(rest).toEqual({ extra: [], differing: [] });
    expect(missing.filter((path) => !path.startsWith(".Records[].messageAttributes."))).toEqual([]);
  });

  test("of an ordered queue is as documented when one machine builds it, but for the number in the sequence", () => {
    const ordered = { ...MESSAGE, group: "g", deduplicationId: "d" };
    expect(compareEvents(toLocalSqsEvent([ordered], "q"), readFixture("sqs-fifo"))).toEqual({
      ...SAME,
      missing: [".Records[].attributes.SequenceNumber"],
    });
  });
});

test("the event of a schedule is as documented when the harness builds it", () => {
  const event = toScheduledEvent({ arn: "arn:aws:events:eu-central-1:000000000000:rule/r", now: Date.now() });
  expect(compareEvents(event, readFixture("schedule"))).toEqual(SAME);
  expect(event.time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
});

test("a comparison sees a field that is missing, one too many, and one of another kind", () => {
  const documented = { a: "1", b: [{ c: 1 }], headers: { x: "y" } };
  expect(compareEvents({ a: 1, b: [{ d: 1 }], headers: { z: "" } }, documented)).toEqual({
    missing: [".b[].c"],
    extra: [".b[].d"],
    differing: [".a"],
  });
});
