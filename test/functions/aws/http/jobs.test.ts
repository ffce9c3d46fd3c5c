import { describe, expect, test } from "vitest";
import type { HttpEvent } from "../../../../functions/aws/http/request.ts";
import { ROUTES } from "../../../../functions/contract/api.ts";
import { JobReport } from "../../../../functions/contract/job.ts";
import {
  ALICE,
  BOB,
  createTestService,
  expectProblem,
  httpEvent,
  jobEvent,
  jsonOf,
  violationPaths,
} from "../../../kit/http-events.ts";
import "../../../kit/to-fail.ts";

const PDF = { tool: "create_pdf@1", arguments: { title: "Minutes", body: "We met." } };
const DAY = 24 * 3600_000;

async function ranJob(service = createTestService()) {
  const response = await service.send(jobEvent({ calls: [PDF] }));
  expect(response.statusCode).toBe(200);
  const report = JobReport.parse(jsonOf(response));
  const artifactPath = `/v1/jobs/${report.job_id}/artifacts/a1`;
  return { service, report, jobPath: `/v1/jobs/${report.job_id}`, artifactPath };
}

describe("which tools a job may name", () => {
  const service = createTestService({ approvals: ["create_pdf@1"] });
  const send = (job: unknown) => service.send(jobEvent(job));

  test("a ref that nothing has is unknown", async () => {
    const problem = expectProblem(await send({ calls: [{ tool: "ghost@1" }] }), 404, "TOOL_UNKNOWN");
    expect(violationPaths(problem)).toEqual(["/calls/0/tool"]);
  });

  test.each([
    "create_pdf",
    "create_pdf@",
    "@1",
    "",
    "Create_PDF@1",
    "create_pdf@1 ",
    "../x@1",
    "a/b@1",
    "create_pdf@1\n",
    7,
    null,
  ])("what is no ref is refused as input: %j", async (tool) => {
    const problem = expectProblem(await send({ calls: [{ tool }] }), 400, "REQUEST_INVALID");
    expect(violationPaths(problem)).toEqual(["/calls/0/tool"]);
  });

  test("one that is installed but not approved is refused, and nothing runs", async () => {
    expectProblem(await send({ calls: [PDF, { tool: "make_plan@1" }] }), 403, "TOOL_NOT_APPROVED");
    expect(jsonOf(await service.send(httpEvent({ path: "/v1/jobs" })))).toEqual({ jobs: [] });
  });

  test("one that the job does not allow is refused", async () => {
    const both = createTestService();
    const job = { allowed_tools: ["make_plan@1"], calls: [PDF] };
    expectProblem(await both.send(jobEvent(job)), 403, "TOOL_NOT_ALLOWED");
  });

  test("an allowlist cannot hold what the operator did not approve", async () => {
    expectProblem(await send({ allowed_tools: ["make_plan@1"], calls: [PDF] }), 403, "TOOL_NOT_APPROVED");
  });

  test("a skill that is not there is not found, and what is no skill's name is refused", async () => {
    expectProblem(await send({ allowed_skills: ["builtin/ghost"], calls: [PDF] }), 404, "SKILL_NOT_FOUND");
    expectProblem(await send({ allowed_skills: ["ghost"], calls: [PDF] }), 400, "REQUEST_INVALID");
  });
});

describe("what a job may ask for", () => {
  const service = createTestService({ limits: { max_calls: 3 } });
  const send = (job: unknown) => service.send(jobEvent(job));

  test("call ids must differ, and one that is left out differs by itself", async () => {
    const twice = await send({
      calls: [
        { ...PDF, id: "x" },
        { ...PDF, id: "x" },
      ],
    });
    expect(violationPaths(expectProblem(twice, 400, "REQUEST_INVALID"))).toEqual(["/calls/1/id"]);
    const implied = JobReport.parse(jsonOf(await send({ calls: [{ ...PDF, id: "c2" }, PDF] })));
    expect(new Set(implied.results.map(({ call_id }) => call_id)).size).toBe(2);
  });

  test.each(["", "a b", "a/b", "é", "x".repeat(65), "a\n"])("a call id must fit a log line: %j", async (id) => {
    expectProblem(await send({ calls: [{ ...PDF, id }] }), 400, "REQUEST_INVALID");
  });

  test("more calls than the operator allows are refused before the first runs", async () => {
    const problem = expectProblem(await send({ calls: [PDF, PDF, PDF, PDF] }), 400, "REQUEST_INVALID");
    expect(violationPaths(problem)).toEqual(["/calls"]);
  });

  test("limits can be lowered, not raised", async () => {
    expect((await send({ calls: [PDF], limits: { max_calls: 1 } })).statusCode).toBe(200);
    const problem = expectProblem(
      await send({ calls: [PDF], limits: { max_calls: 4, link_seconds: 3600 } }),
      400,
      "REQUEST_INVALID",
    );
    expect(violationPaths(problem)).toEqual(["/limits/max_calls", "/limits/link_seconds"]);
  });

  test.each([{ max_calls: 0 }, { max_calls: 1.5 }, { max_calls: "1" }, { max_calls: null }, { calls: 1 }])(
    "a limit is a whole number of a known name: %j",
    async (limits) => {
      expectProblem(await send({ calls: [PDF], limits }), 400, "REQUEST_INVALID");
    },
  );

  test("arguments beyond their own limit are too large, whatever the body may be", async () => {
    const roomy = createTestService({ maxBodyBytes: 1_000_000 });
    const job = { calls: [{ tool: "create_pdf@1", arguments: { body: "x".repeat(300_000) } }] };
    expectProblem(await roomy.send(jobEvent(job)), 413, "PAYLOAD_TOO_LARGE");
  });
});

describe("retries", () => {
  const keyed = (key: string, job: unknown = { calls: [PDF] }, more = {}) =>
    jobEvent(job, { headers: { "idempotency-key": key, ...more } });

  test("with one key get the first answer with a fresh link, and make no second job", async () => {
    const service = createTestService();
    const first = JobReport.parse(jsonOf(await service.send(keyed("k1"))));
    service.clock.advance(60_000);
    const second = JobReport.parse(jsonOf(await service.send(keyed("k1"))));
    expect(second.artifacts[0]?.expires_at).not.toBe(first.artifacts[0]?.expires_at);
    const lasting = ({ artifacts, ...report }: JobReport) => ({
      ...report,
      files: artifacts.map(({ sha256 }) => sha256),
    });
    expect(lasting(second)).toEqual(lasting(first));
    expect(jsonOf(await service.send(httpEvent({ path: "/v1/jobs" }))).jobs).toHaveLength(1);
  });

  test("with one key and another job are refused, and by another owner they are no retries", async () => {
    const service = createTestService();
    const { job_id } = jsonOf(await service.send(keyed("k1")));
    expectProblem(await service.send(keyed("k1", { calls: [PDF, PDF] })), 422, "IDEMPOTENCY_MISMATCH");
    const headers = { "idempotency-key": "k1" };
    const foreign = await service.send(jobEvent({ calls: [PDF, PDF] }, { headers, userArn: BOB }));
    expect(foreign.statusCode).toBe(200);
    expect(jsonOf(foreign).job_id).not.toBe(job_id);
  });

  test.each(["", "x".repeat(256), "k\u00e9y", "a\tb"])(
    "with the key %j are refused, since it may not mean what it says",
    async (key) => {
      const problem = expectProblem(await createTestService().send(keyed(key)), 400, "REQUEST_INVALID");
      expect(problem.detail).toContain("Idempotency-Key");
    },
  );

  test.each(["k", "x".repeat(255), '"5f0c3a52-2f0c-4f43-9d3a-0a6f6c1c6e11"'])("take %j for a key", async (key) => {
    expect((await createTestService().send(keyed(key))).statusCode).toBe(200);
  });
});

describe("a job that nobody waits for", () => {
  const ASYNC = { headers: { prefer: "respond-async" } };

  test("is accepted with the place of its report, which follows it to its end", async () => {
    const service = createTestService();
    const response = await service.send(jobEvent({ calls: [PDF] }, ASYNC));
    expect(response.statusCode).toBe(202);
    const { job_id, status } = JobReport.parse(jsonOf(response));
    const path = `/v1/jobs/${job_id}`;
    expect(response.headers).toMatchObject({ location: path, "preference-applied": "respond-async" });
    expect(status).toBe("queued");
    await service.workOff();
    const report = JobReport.parse(jsonOf(await service.send(httpEvent({ path }))));
    expect(report).toMatchObject({ status: "succeeded", artifacts: [{ name: "Minutes.pdf" }] });
    expect((await service.send(httpEvent({ path: `${path}/artifacts/a1` }))).statusCode).toBe(302);
    expect(jsonOf(await service.send(httpEvent({ path: "/v1/jobs" }))).jobs).toMatchObject([{ status: "succeeded" }]);
  });

  test.each([
    ["respond-async", 202],
    ["Respond-Async", 202],
    ["wait=10, respond-async", 202],
    ["respond-async; foo=bar,handling=lenient", 202],
    ["wait=10", 200],
    ["respond-asynchronously", 200],
    ["", 200],
  ])("is asked for by Prefer: %s", async (prefer, status) => {
    const response = await createTestService().send(jobEvent({ calls: [PDF] }, { headers: { prefer } }));
    expect(response.statusCode).toBe(status);
    if (status === 200) expect(response.headers).not.toHaveProperty("preference-applied");
  });

  test("can be cancelled until it has ended", async () => {
    const service = createTestService();
    const { job_id } = jsonOf(await service.send(jobEvent({ calls: [PDF] }, ASYNC)));
    const path = `/v1/jobs/${job_id}`;
    const cancelled = await service.send(httpEvent({ method: "DELETE", path }));
    expect(cancelled.statusCode).toBe(200);
    expect(jsonOf(cancelled)).toMatchObject({ status: "failed", error: { code: "JOB_CANCELLED" } });
    await service.workOff();
    expect(jsonOf(await service.send(httpEvent({ path })))).toMatchObject({ status: "failed", artifacts: [] });
    const { jobPath, service: other } = await ranJob();
    expectProblem(await other.send(httpEvent({ method: "DELETE", path: jobPath })), 409, "JOB_FINISHED");
  });

  test("is refused at once where it would be refused later", async () => {
    const service = createTestService();
    expectProblem(await service.send(jobEvent({ calls: [{ tool: "data_table@1" }] }, ASYNC)), 403, "TOOL_NOT_APPROVED");
    expect(service.queuedJobs).toEqual([]);
  });
});

describe("ids", () => {
  test.each([
    "x",
    "..",
    "%2e%2e",
    "%2F",
    "0".repeat(26),
    "7".repeat(25),
    "Z".repeat(26),
    "%00",
    "7ybqaacxvsbmrafv2ztm3x2ve0.json",
    "a".repeat(5_000),
  ])("that are no job's are answered like those of nobody: %s", async (id) => {
    const service = createTestService();
    for (const path of [`/v1/jobs/${id}`, `/v1/jobs/${id}/artifacts/a1`]) {
      expectProblem(await service.send(httpEvent({ path })), 404, "JOB_NOT_FOUND");
    }
    const path = `/v1/jobs/${id}/artifacts/a1`;
    expectProblem(await service.send(httpEvent({ method: "DELETE", path })), 404, "JOB_NOT_FOUND");
  });

  test.each(["a2", "a0", "a01", "a", "A1", "1", "..", "a1.pdf", "__proto__"])(
    "that are no artifact's are not found: %s",
    async (id) => {
      const { service, jobPath } = await ranJob();
      const path = `${jobPath}/artifacts/${id}`;
      expectProblem(await service.send(httpEvent({ path })), 404, "ARTIFACT_NOT_FOUND");
      expectProblem(await service.send(httpEvent({ method: "DELETE", path })), 404, "ARTIFACT_NOT_FOUND");
    },
  );
});

describe("owners", () => {
  test("another's job is answered on every route like one that is not there", async () => {
    const { service, report, jobPath, artifactPath } = await ranJob();
    const absent = `/v1/jobs/${report.job_id.slice(0, -1)}${report.job_id.endsWith("0") ? "1" : "0"}`;
    const asBob = (method: string, path: string) => service.send(httpEvent({ method, path, userArn: BOB }));
    for (const [method, suffix] of [
      ["GET", ""],
      ["HEAD", ""],
      ["DELETE", ""],
      ["GET", "/artifacts/a1"],
      ["DELETE", "/artifacts/a1"],
    ] as const) {
      const [foreign, none] = [await asBob(method, jobPath + suffix), await asBob(method, absent + suffix)];
      expect(foreign.statusCode).toBe(404);
      expect(foreign.body?.replace(report.job_id, "")).toBe(none.body?.replace(absent.slice("/v1/jobs/".length), ""));
    }
    expect(jsonOf(await asBob("GET", "/v1/jobs"))).toEqual({ jobs: [] });
    expect((await service.send(httpEvent({ path: artifactPath }))).statusCode).toBe(302);
  });

  test("two people of one identity pool, who share a role and its session, are two owners", async () => {
    const { service } = await ranJob();
    const asIdentity = (identityId: string, event: HttpEvent): HttpEvent => {
      const iam = { userArn: ALICE, cognitoIdentity: { identityId } };
      return Object.assign(structuredClone(event), {
        requestContext: { ...event.requestContext, authorizer: { iam } },
      });
    };
    const made = jsonOf(await service.send(asIdentity("eu:1", jobEvent({ calls: [PDF] }))));
    const path = `/v1/jobs/${made.job_id}`;
    expect((await service.send(asIdentity("eu:1", httpEvent({ path })))).statusCode).toBe(200);
    expectProblem(await service.send(asIdentity("eu:2", httpEvent({ path }))), 404, "JOB_NOT_FOUND");
    expectProblem(await service.send(httpEvent({ path })), 404, "JOB_NOT_FOUND");
  });

  test.each([undefined, ""])("nobody is let in without a principal: %j", async (userArn) => {
    const service = createTestService();
    const events = [
      jobEvent({ calls: [PDF] }, { userArn }),
      httpEvent({ path: "/v1/jobs", userArn }),
      httpEvent({ path: "/v1/jobs/x", userArn }),
      httpEvent({ path: "/v1/jobs/x/artifacts/a1", userArn }),
      httpEvent({ method: "DELETE", path: "/v1/jobs/x/artifacts/a1", userArn }),
      ...ROUTES.map(({ method, path }) => httpEvent({ method, path: path.replaceAll(/[{}]/g, ""), userArn })),
    ];
    for (const event of events) expectProblem(await service.send(event), 403, "ACCESS_DENIED");
  });

  test("a principal on a prototype or in another place is none", async () => {
    const service = createTestService();
    const base = httpEvent({ path: "/v1/jobs", userArn: undefined });
    for (const authorizer of [
      { userArn: ALICE },
      { jwt: { userArn: ALICE } },
      { iam: { __proto__: { userArn: ALICE } } },
    ]) {
      const event = { ...base, requestContext: { ...base.requestContext, authorizer } };
      expectProblem(await service.handler(JSON.parse(JSON.stringify(event)), JSON.parse("{}")), 403, "ACCESS_DENIED");
    }
  });

  test("all are one where the operator lets anybody in", async () => {
    const { service, jobPath } = await ranJob(createTestService({ auth: "none" }));
    expect((await service.send(httpEvent({ path: jobPath, userArn: undefined }))).statusCode).toBe(200);
  });

  test("no key and no record holds the principal's name", async () => {
    const { service } = await ranJob();
    const { keys } = await service.store.list("", { limit: 10 });
    const contents = await Promise.all(keys.map((key) => service.store.get(key, { maxBytes: 1e6 })));
    const text = keys.join() + contents.map((each) => Buffer.from(each?.bytes ?? []).toString("latin1")).join();
    expect(keys.length).toBe(2);
    expect(text).not.toMatch(/alice|111122223333/);
  });
});

describe("files", () => {
  test("a link is minted at each asking and says truly when it ends", async () => {
    const { service, report, jobPath, artifactPath } = await ranJob();
    const [first] = report.artifacts;
    service.clock.advance(14 * 60_000);
    expect(service.store.readLink(first?.url ?? "")).toMatchObject({ ok: true });
    service.clock.advance(60_000);
    expect(Date.parse(first?.expires_at ?? "")).toBe(service.clock.now());
    expect(service.store.readLink(first?.url ?? "")).toFail("ARTIFACT_EXPIRED");
    const again = JobReport.parse(jsonOf(await service.send(httpEvent({ path: jobPath }))));
    expect(service.store.readLink(again.artifacts[0]?.url ?? "")).toMatchObject({ ok: true });
    const redirect = await service.send(httpEvent({ path: artifactPath }));
    expect(redirect.statusCode).toBe(302);
    expect(service.store.readLink(String(redirect.headers?.location))).toMatchObject({
      ok: true,
      value: { fileName: "Minutes.pdf" },
    });
  });

  test("a removed file is not found, removing it again succeeds, the report still names it", async () => {
    const { service, report, jobPath, artifactPath } = await ranJob();
    for (const _ of [1, 2]) {
      const removed = await service.send(httpEvent({ method: "DELETE", path: artifactPath }));
      expect(removed).toMatchObject({ statusCode: 204, headers: { "x-request-id": "request-1" } });
      expect(removed.body).toBeUndefined();
    }
    expectProblem(await service.send(httpEvent({ path: artifactPath })), 404, "ARTIFACT_NOT_FOUND");
    const after = JobReport.parse(jsonOf(await service.send(httpEvent({ path: jobPath }))));
    expect(after.artifacts[0]).toMatchObject({
      name: "Minutes.pdf",
      sha256: report.artifacts[0]?.sha256,
      deleted_at: "2026-11-30T12:00:00.000Z",
    });
    expect(after.artifacts[0]).not.toHaveProperty("url");
  });

  test("a file whose days are over is gone, and its job is not", async () => {
    const { service, jobPath, artifactPath } = await ranJob(createTestService({ artifactDays: 2 }));
    service.clock.advance(2 * DAY - 1_000);
    expect((await service.send(httpEvent({ path: artifactPath }))).statusCode).toBe(302);
    service.clock.advance(1_000);
    expectProblem(await service.send(httpEvent({ path: artifactPath })), 410, "ARTIFACT_EXPIRED");
    const after = JobReport.parse(jsonOf(await service.send(httpEvent({ path: jobPath }))));
    expect(after.artifacts[0]).not.toHaveProperty("url");
  });

  test("the bytes are never in an answer", async () => {
    const { report } = await ranJob();
    expect(JSON.stringify(report)).not.toMatch(/base64|JVBERi/);
  });
});

describe("queries", () => {
  const service = createTestService();
  const query = (path: string, given: Readonly<Record<string, string>>) =>
    service.send(httpEvent({ path, query: given }));

  test.each(["mcp", "anthropic", "openai"])("tools come ready for a model as %s", async (format) => {
    const body = jsonOf(await query("/v1/tools", { format }));
    expect(Object.values(body.refs ?? {})).toEqual(["create_pdf@1", "make_plan@1"]);
    expect(body.tools).toHaveLength(2);
  });

  test.each([
    { format: "xml" },
    { format: "" },
    { format: "MCP" },
    { format: "mcp,openai" },
    { format: "constructor" },
    { fromat: "mcp" },
    { ["__proto__"]: "mcp" },
  ])("tools in an unknown form are refused: %j", async (given) => {
    expectProblem(await query("/v1/tools", given), 400, "REQUEST_INVALID");
  });

  test.each([
    { limit: "0" },
    { limit: "101" },
    { limit: "1.0" },
    { limit: "-1" },
    { limit: " 1" },
    { limit: "1e1" },
    { limit: "" },
    { limit: "5,6" },
    { after: "../x" },
    { after: "" },
    { after: "x".repeat(65) },
    { offset: "1" },
  ])("a page is asked for by a number and a job id: %j", async (given) => {
    expectProblem(await query("/v1/jobs", given), 400, "REQUEST_INVALID");
  });

  test("pages follow one another, newest first, and end", async () => {
    const own = createTestService();
    const ids: string[] = [];
    for (const _ of [1, 2, 3]) {
      ids.unshift((await ranJob(own)).report.job_id);
      own.clock.advance(1_000);
    }
    const list = async (given: Readonly<Record<string, string>>) =>
      jsonOf(await own.send(httpEvent({ path: "/v1/jobs", query: given })));
    const first = await list({ limit: "2" });
    expect(first).toMatchObject({ jobs: [{ job_id: ids[0] }, { job_id: ids[1] }], next: ids[1] });
    const second = await list({ limit: "2", after: String(first.next) });
    expect(second).toMatchObject({ jobs: [{ job_id: ids[2], calls: 1, artifacts: 1 }] });
    expect(second).not.toHaveProperty("next");
    expect((await list({ limit: "100" })).jobs).toHaveLength(3);
  });
});

test("a store that fails is a defect, and the job's answer says no more", async () => {
  const service = createTestService({
    wrapStore: (store) => ({
      ...store,
      put: async () => {
        throw new Error("AccessDenied: arn:aws:s3:::secret-bucket");
      },
    }),
  });
  const response = await service.send(jobEvent({ calls: [PDF] }));
  expectProblem(response, 500, "DEFECT");
  expect(response.body).not.toContain("secret-bucket");
});
