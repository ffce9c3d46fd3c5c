import { beforeAll, expect, test } from "vitest";
import { ROUTES } from "../../functions/contract/api.ts";
import type { Cloud } from "./kit/cloud.ts";
import { projectMaker } from "./kit/project.ts";
import { behindRoute, expectAllAllowed, jsonOf, postJob, send } from "./kit/service.ts";

/**
 * The stack for callers who bring a token: what the template says of issuer, audience and scopes, and who owns what.
 */

const ISSUER = "https://issuer.test/pool";
const maker = projectMaker();
let cloud: Cloud;

beforeAll(async () => {
  const auth = { issuer: ISSUER, audience: ["skillbroker"] };
  cloud = await maker.synthesise({ context: { auth } }).deploy();
});

const inAMinute = () => Math.floor(Date.now() / 1000) + 60;

function tokenOf(sub: string, scopes: readonly string[], claims: Readonly<Record<string, unknown>> = {}) {
  const scope = scopes.map((name) => `skillbroker/${name}`).join(" ");
  return { claims: { iss: ISSUER, aud: "skillbroker", sub, exp: inAMinute(), scope, ...claims } };
}

test("a job is run for a token with the right scope, and is of its subject alone", async () => {
  const posted = await postJob(cloud, { caller: tokenOf("anna", ["run", "read"]) });
  expect(posted.status).toBe(200);
  const path = `/v1/jobs/${jsonOf(posted).job_id}`;
  const [own, foreign] = [tokenOf("anna", ["read"]), tokenOf("bert", ["read"])];
  expect((await send(cloud, { path, caller: own })).status).toBe(200);
  expect((await send(cloud, { path, caller: foreign })).status).toBe(404);
  expect(jsonOf(await send(cloud, { path: "/v1/jobs", caller: foreign })).jobs).toEqual([]);
});

test("no route lets anybody in without a token of this issuer and for this audience, and no function is asked", async () => {
  const { lambda } = behindRoute(cloud, "POST", "/v1/jobs");
  const said = lambda.lines().length;
  const all = ["run", "read", "notify", "operate"];
  const callers = [undefined, tokenOf("a", all, { iss: "https://other.test" }), tokenOf("a", all, { aud: "other" })];
  for (const { method, path } of [...ROUTES, { method: "GET", path: "/no/such/path" }]) {
    for (const caller of callers) {
      const answer = await send(cloud, { method, path: path.replace(/\{.+?\}/g, "x"), caller });
      expect({ method, path, status: answer.status }).toEqual({ method, path, status: 401 });
    }
  }
  expect(lambda.lines().length).toBe(said);
});

test("every route of a group wants the scope of that group, and no other opens it", async () => {
  const groups = ["run", "read", "notify", "operate"];
  for (const { method, path, group } of ROUTES) {
    const request = { method, path: path.replace(/\{.+?\}/g, "x") };
    const others = groups.filter((each) => each !== group);
    const refused = await send(cloud, { ...request, caller: tokenOf("a", others) });
    const answered = await send(cloud, { ...request, caller: tokenOf("a", [group]) });
    expect({
      method,
      path,
      refused: refused.status,
      opened: answered.status !== 401 && answered.status !== 403,
    }).toEqual({ method, path, refused: 403, opened: true });
  }
});

test("no function asks for what its role does not allow", () => {
  expectAllAllowed(cloud);
});
