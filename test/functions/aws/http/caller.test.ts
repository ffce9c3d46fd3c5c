import { describe, expect, test } from "vitest";
import { callerOf } from "../../../../functions/aws/http/caller.ts";
import { ROUTES } from "../../../../functions/contract/api.ts";
import { JwtAuth, ROUTE_GROUPS, type RouteGroup } from "../../../../functions/contract/auth.ts";
import { createTestService, expectProblem, httpEvent, jobEvent, jsonOf } from "../../../kit/http-events.ts";
import "../../../kit/to-fail.ts";

const ISSUER = "https://id.acme.test/";
const AUTH = JwtAuth.parse({ issuer: ISSUER, audience: ["skills"], scopes: { run: "jobs:run" } });
const GROUPS: readonly RouteGroup[] = ROUTE_GROUPS;
const ALL_SCOPES = GROUPS.map((group) => AUTH.scopes[group]).join(" ");
const token = (changes: Readonly<Record<string, string>> = {}) => ({
  iss: ISSUER,
  sub: "ann",
  scope: ALL_SCOPES,
  ...changes,
});
const ownerOf = (claims: Readonly<Record<string, string>>) => callerOf(httpEvent({ claims }), AUTH, "run");

test("every group of routes has routes", () => {
  expect(new Set(ROUTES.map(({ group }) => group))).toEqual(new Set(GROUPS));
});

describe("a token", () => {
  test.each(GROUPS)("without the scope of %s is refused on each of its routes, with no other on any", async (group) => {
    const service = createTestService({ auth: AUTH });
    const others = GROUPS.filter((other) => other !== group).map((other) => AUTH.scopes[other]);
    for (const { method, path, group: wanted } of ROUTES) {
      const claims = token({ scope: others.join(" ") });
      const response = await service.send(httpEvent({ method, path: path.replaceAll(/[{}]/g, ""), claims }));
      if (wanted === group) expectProblem(response, 403, "ACCESS_DENIED");
      else expect([path, response.statusCode]).not.toEqual([path, 403]);
    }
  });

  test("says in the refusal which scope is wanted", () => {
    const refused = callerOf(httpEvent({ claims: token({ scope: "" }) }), AUTH, "operate");
    expect(refused).toFail("ACCESS_DENIED");
    expect(!refused.ok && refused.fault.message).toContain("skillbroker/operate");
  });

  test.each([
    ["of words", { scope: "a jobs:run b" }],
    ["that was a list, as the gateway writes one", { scope: "[a jobs:run]" }],
    ["in scp", { scope: "", scp: "jobs:run" }],
    ["that was a list in scp", { scope: "", scp: "[jobs:run b]" }],
  ])("may have its scopes in a claim %s", (_, changes) => {
    expect(ownerOf(token(changes)).ok).toBe(true);
  });

  test.each([
    ["part of a word", { scope: "xjobs:run" }],
    ["a longer word", { scope: "jobs:run:all" }],
    ["another case", { scope: "JOBS:RUN" }],
    ["another claim", { scope: "", scopes: "jobs:run" }],
  ])("has no scope by %s", (_, changes) => {
    expect(ownerOf(token(changes))).toFail("ACCESS_DENIED");
  });

  test.each([
    ["of another issuer", { iss: "https://id.other.test/" }],
    ["without an issuer", { iss: "" }],
    ["without a subject", { sub: "" }],
  ])("%s is nobody's", (_, changes) => {
    expect(ownerOf(token(changes))).toFail("ACCESS_DENIED");
  });

  test("is what counts: neither a signature nor nothing at all opens a service for tokens, nor a token one for signatures", async () => {
    const service = createTestService({ auth: AUTH });
    expectProblem(await service.send(httpEvent({ path: "/v1/jobs" })), 403, "ACCESS_DENIED");
    expectProblem(await service.send(httpEvent({ path: "/v1/jobs", userArn: undefined })), 403, "ACCESS_DENIED");
    expectProblem(
      await createTestService().send(httpEvent({ path: "/v1/jobs", claims: token() })),
      403,
      "ACCESS_DENIED",
    );
  });
});

describe("owners by token", () => {
  test("are subjects of their issuer, whatever else their tokens say", () => {
    expect(ownerOf(token({ email: "a" }))).toEqual(ownerOf(token({ email: "b", jti: "1" })));
    expect(ownerOf(token({ sub: "bob" }))).not.toEqual(ownerOf(token()));
    const elsewhere = JwtAuth.parse({ ...AUTH, issuer: "https://id.other.test/" });
    const other = callerOf(httpEvent({ claims: token({ iss: elsewhere.issuer }) }), elsewhere, "run");
    expect(other.ok).toBe(true);
    expect(other).not.toEqual(ownerOf(token()));
  });

  test("see their own jobs alone", async () => {
    const service = createTestService({ auth: AUTH });
    const job = { calls: [{ tool: "create_pdf@1", arguments: { body: "We met." } }] };
    const { job_id } = jsonOf(await service.send(jobEvent(job, { claims: token() })));
    for (const [method, suffix] of [
      ["GET", ""],
      ["DELETE", ""],
      ["GET", "/artifacts/a1"],
      ["DELETE", "/artifacts/a1"],
    ] as const) {
      const path = `/v1/jobs/${job_id}${suffix}`;
      expectProblem(
        await service.send(httpEvent({ method, path, claims: token({ sub: "bob" }) })),
        404,
        "JOB_NOT_FOUND",
      );
    }
    expect(jsonOf(await service.send(httpEvent({ path: "/v1/jobs", claims: token({ sub: "bob" }) })))).toEqual({
      jobs: [],
    });
    expect((await service.send(httpEvent({ path: `/v1/jobs/${job_id}`, claims: token() }))).statusCode).toBe(200);
  });
});
