import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createHttpHandler } from "../../../../functions/aws/http/handler.ts";
import type { SkillBrokerApi } from "../../../../functions/contract/api.ts";
import { ROUTES } from "../../../../functions/contract/api.ts";
import { Fault } from "../../../../functions/contract/fault.ts";
import {
  createTestService,
  expectProblem,
  httpEvent,
  jobEvent,
  jsonOf,
  type Logged,
  lambdaContext,
} from "../../../kit/http-events.ts";

const service = createTestService();
const get = (path: string, method = "GET") => service.send(httpEvent({ path, method }));

describe("paths", () => {
  test.each([
    "/",
    "",
    "/v1",
    "/v1/",
    "/v1/tools/",
    "//v1/tools",
    "/v1//tools",
    "/v1/tools/x",
    "/v2/tools",
    "/V1/tools",
    "v1/tools",
    "/v1/tools%",
    "/v1/%",
    "/v1/jobs/%zz",
    "/v1/jobs/%ff",
    "/v1/jobs/",
    "/v1/jobs//artifacts/a1",
    "/v1/skills/builtin",
    "/v1/skills/builtin/status-update/",
    "/v1/../v1/tools",
    "/v1/./tools",
    "/v1\\tools",
    "/v1/tools?format=mcp",
    "/v1/tools#x",
    "/__proto__",
    "/constructor",
    `/${"a".repeat(100_000)}`,
    "/".repeat(10_000),
  ])("that name nothing are not found: %s", async (path) => {
    expectProblem(await get(path), 404, "ROUTE_NOT_FOUND");
  });

  test("may be percent-encoded", async () => {
    expect((await get("/v1/%74ools")).statusCode).toBe(200);
    expect((await get("/v1/skills/builtin/status%2Dupdate")).statusCode).toBe(200);
  });

  test.each([
    "/v1/skills/builtin%2Fstatus-update/x",
    "/v1/skills/builtin/..%2Fstatus-update",
    "/v1/skills/__proto__/constructor",
  ])("of skills cannot be talked into another: %s", async (path) => {
    expectProblem(await get(path), 404, "SKILL_NOT_FOUND");
  });
});

describe("methods", () => {
  test.each([
    ["/v1/tools", "POST", "GET, HEAD"],
    ["/v1/tools", "OPTIONS", "GET, HEAD"],
    ["/v1/tools", "get", "GET, HEAD"],
    ["/v1/jobs", "PUT", "POST, GET, HEAD"],
    ["/v1/jobs/x/artifacts/a1", "POST", "GET, HEAD, DELETE"],
    ["/v1/health", "constructor", "GET, HEAD"],
  ])("that %s does not take are named beside those it takes: %s", async (path, method, allowed) => {
    const response = await get(path, method);
    expectProblem(response, 405, "METHOD_NOT_ALLOWED");
    expect(response.headers).toMatchObject({ allow: allowed });
  });

  test("HEAD is answered as GET, without the body", async () => {
    const [head, whole] = [await get("/v1/tools", "HEAD"), await get("/v1/tools")];
    expect(head).toEqual({ statusCode: 200, headers: whole.headers });
    const refused = await get("/v1/nothing", "HEAD");
    expect(refused).toMatchObject({ statusCode: 404 });
    expect(refused.body).toBeUndefined();
  });
});

describe("every response", () => {
  test("carries the gateway's request id, and a problem document repeats it", async () => {
    expect((await get("/v1/tools")).headers).toMatchObject({ "x-request-id": "request-1" });
    expect(jsonOf(await get("/nothing")).request_id).toBe("request-1");
  });

  test("falls back to the invocation's id", async () => {
    const response = await service.handler({}, lambdaContext("invocation-9"));
    expect(response.headers).toMatchObject({ "x-request-id": "invocation-9" });
  });

  test.each(["", "a\r\nset-cookie: x", "ü", "x".repeat(129), " ", 7, null])(
    "carries no id that no header can: %j",
    async (requestId) => {
      const response = await service.send({ requestContext: { requestId } });
      expect(response.headers).toMatchObject({ "x-request-id": "invocation-1" });
    },
  );

  test("is never stored or sniffed", async () => {
    for (const response of [await get("/v1/tools"), await get("/nothing"), await service.send(jobEvent({}))]) {
      expect(response.headers).toMatchObject({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
    }
  });

  test("is logged in one line with method, path, status and code", async () => {
    const own = createTestService();
    await own.send(httpEvent({ path: "/nothing" }));
    const lines = own.logged.filter(({ message }) => message === "request");
    expect(lines).toEqual([
      {
        level: "info",
        message: "request",
        fields: {
          request_id: "request-1",
          method: "GET",
          path: "/nothing",
          status: 404,
          duration_ms: 0,
          code: "ROUTE_NOT_FOUND",
        },
      },
    ]);
  });

  test("is logged with a path of bounded length", async () => {
    const own = createTestService();
    await own.send(httpEvent({ path: `/${"a".repeat(5_000)}` }));
    expect(JSON.stringify(own.logged).length).toBeLessThan(1_000);
  });
});

describe("events that are hardly any", () => {
  test.each([
    [{}],
    [null],
    ["text"],
    [[]],
    [7],
    [{ rawPath: 7, headers: "x", requestContext: "x" }],
    [{ rawPath: "/v1/jobs", requestContext: null }],
    [{ rawPath: "/v1/jobs", requestContext: { http: null, authorizer: null } }],
    [{ rawPath: "/v1/jobs", requestContext: { http: { method: 7 }, authorizer: { iam: { userArn: 7 } } } }],
    [{ rawPath: "/v1/jobs", requestContext: { authorizer: { iam: null } }, headers: [1], queryStringParameters: "x" }],
    [{ rawPath: "/v1/tools", headers: null, queryStringParameters: [7] }],
    [{ rawPath: "/v1/tools", queryStringParameters: { format: null } }],
  ])("are answered: %j", async (event) => {
    const response = await service.send(event);
    expect([200, 403, 404]).toContain(response.statusCode);
    expect(response.headers).toHaveProperty("x-request-id");
  });

  test("are answered without a context as well", async () => {
    // The runtime always gives one; a wrong one must not hide the answer.
    const response = await service.handler({}, JSON.parse("{}"));
    expect(response.headers).toMatchObject({ "x-request-id": "unknown" });
  });
});

const PATHS = ROUTES.map(({ path }) => path.replace(/\{\w+\}/g, "x"));
const METHODS = ["GET", "POST", "DELETE", "HEAD", "PUT", "OPTIONS"];
const looseEvent = fc.record(
  {
    rawPath: fc.oneof(fc.constantFrom(...PATHS), fc.webPath(), fc.string({ unit: "binary" }), fc.anything()),
    headers: fc.oneof(
      fc.constant({ "content-type": "application/json" }),
      fc.dictionary(fc.string(), fc.anything()),
      fc.anything(),
    ),
    queryStringParameters: fc.oneof(
      fc.dictionary(fc.constantFrom("format", "limit", "after", "x"), fc.anything()),
      fc.anything(),
    ),
    requestContext: fc.oneof(
      fc.record(
        {
          http: fc.record({ method: fc.oneof(fc.constantFrom(...METHODS), fc.string()) }),
          authorizer: fc.oneof(fc.constant({ iam: { userArn: "arn:aws:iam::1:user/a" } }), fc.anything()),
          requestId: fc.oneof(fc.uuid(), fc.anything()),
        },
        { requiredKeys: [] },
      ),
      fc.anything(),
    ),
    body: fc.oneof(
      fc.json(),
      fc.string(),
      fc.anything(),
      fc
        .record({
          calls: fc.array(
            fc.record({
              tool: fc.constant("create_pdf@1"),
              arguments: fc.dictionary(fc.constantFrom("body", "title", "x"), fc.jsonValue()),
            }),
          ),
        })
        .map((job) => JSON.stringify(job)),
    ),
    isBase64Encoded: fc.oneof(fc.boolean(), fc.anything()),
  },
  { requiredKeys: [] },
);

test("any event gets an answer below 500 that is JSON or a problem document and names the request", async () => {
  await fc.assert(
    fc.asyncProperty(looseEvent, async (event) => {
      // JSON.parse gives what the handler's type promises as little as a caller does.
      const given = JSON.parse(
        JSON.stringify(event, (_, value) => (typeof value === "bigint" ? String(value) : value)) ?? "null",
      );
      const { statusCode = 0, headers = {}, body } = await service.handler(given, lambdaContext());
      expect(Number.isInteger(statusCode) && statusCode >= 200 && statusCode < 500).toBe(true);
      expect(headers["x-request-id"]).toMatch(/^[\x21-\x7e]{1,128}$/);
      if (body !== undefined) expect(JSON.parse(body)).toBeTypeOf("object");
      const type = statusCode >= 400 ? "application/problem+json" : "application/json";
      expect(headers["content-type"]).toBe(type);
    }),
    { numRuns: 500 },
  );
});

describe("a request that takes too long", () => {
  test("is answered by us before the function's time is over", async () => {
    const never = new Promise<never>(() => undefined);
    const service = createTestService({
      wrapStore: (store) => ({ ...store, getUnless: () => never, get: () => never }),
    });
    const context = { ...lambdaContext(), getRemainingTimeInMillis: () => 1_050 };
    const response = await service.handler(httpEvent({ path: "/v1/jobs/7ybqaby9kz9yvhyj833nfcx86s" }), context);
    const problem = expectProblem(response, 504, "REQUEST_TIMEOUT");
    expect(problem.detail).toContain("respond-async");
  });

  test("and one that does not leaves no timer behind, which Lambda would freeze", async () => {
    const before = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    await createTestService().send(httpEvent({ path: "/v1/tools" }));
    expect(process.getActiveResourcesInfo().filter((name) => name === "Timeout").length).toBe(before);
  });
});

describe("a defect", () => {
  const SECRET = "AKIASECRET at /var/task/functions/http.lambda.js";

  function failingWith(error: unknown) {
    const logged: Logged[] = [];
    const fail = () => {
      throw error;
    };
    const api: SkillBrokerApi = {
      getHealth: fail,
      listTools: fail,
      listSkills: fail,
      getSkill: fail,
      runJob: fail,
      queueJob: fail,
      cancelJob: fail,
      listJobs: fail,
      getJob: async () => fail(),
      linkArtifact: fail,
      deleteArtifact: fail,
      notify: fail,
      getLatestRefresh: fail,
      refresh: fail,
    };
    const handler = createHttpHandler({
      api,
      auth: "none",
      maxBodyBytes: 1_000,
      version: "0",
      clock: () => 0,
      answerMs: 1_000,
      log: (level, message, fields = {}) => logged.push({ level, message, fields: { ...fields } }),
    });
    return { handler, logged };
  }

  test.each([
    new Error(SECRET, { cause: new Error("the disk") }),
    new TypeError(SECRET),
    new Fault("DEFECT", SECRET),
    SECRET,
    undefined,
    null,
    { message: SECRET },
  ])("is answered with a fixed sentence: %s", async (error) => {
    const { handler } = failingWith(error);
    for (const path of ["/v1/health", "/v1/jobs/x"]) {
      const response = await handler(httpEvent({ path }), lambdaContext());
      const problem = expectProblem(response, 500, "DEFECT");
      expect(problem.detail).toBe("the service failed; its log has the cause, under the request id or the job id");
      expect(JSON.stringify(response)).not.toContain("AKIA");
    }
  });

  test("is logged at error level with the thing itself, and the request with its status", async () => {
    const error = new Error(SECRET, { cause: new Error("the disk") });
    const { handler, logged } = failingWith(error);
    await handler(httpEvent({ path: "/v1/health" }), lambdaContext());
    expect(logged).toMatchObject([
      { level: "error", message: "request failed", fields: { request_id: "request-1", error } },
      { level: "info", message: "request", fields: { status: 500 } },
    ]);
  });

  test("of the operator's making keeps its own words and status", async () => {
    const { handler, logged } = failingWith(new Fault("REPOSITORY_REFUSED", "acme is refused"));
    expectProblem(await handler(httpEvent({ path: "/v1/health" }), lambdaContext()), 503, "REPOSITORY_REFUSED");
    expect(logged.filter(({ level }) => level === "error")).toEqual([]);
  });
});
