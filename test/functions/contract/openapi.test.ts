import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { ROUTES } from "../../../functions/contract/api.ts";
import { FAULTS } from "../../../functions/contract/fault.ts";
import { toOpenApi } from "../../../functions/contract/openapi.ts";
import { createTestService, httpEvent, jobEvent, jsonOf } from "../../kit/http-events.ts";

const COMPONENTS = "#/components/schemas/";
const JOB = { calls: [{ id: "c1", tool: "create_pdf@1", arguments: { title: "Minutes", body: "We met." } }] };
// As a caller gets it: through JSON, so nothing that JSON cannot say is left.
const api = JSON.parse(JSON.stringify(toOpenApi("1.2.3")));

function validatorOf(name: string) {
  const $defs = JSON.parse(JSON.stringify(api.components.schemas).replaceAll(COMPONENTS, "#/$defs/"));
  return new Ajv2020({ strict: false, validateFormats: false }).compile({ $ref: `#/$defs/${name}`, $defs });
}

function findValues(value: unknown, wanted: string): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => [
    ...(key === wanted ? [member] : []),
    ...findValues(member, wanted),
  ]);
}

describe("the document", () => {
  test("is OpenAPI 3.1 of the product's version", () => {
    expect(api).toMatchObject({ openapi: "3.1.0", info: { title: "skillbroker", version: "1.2.3" } });
  });

  test("describes every route and no other, each with an id of its own", () => {
    const described = Object.entries<object>(api.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
    );
    expect(described.sort()).toEqual(
      ROUTES.map(({ operation, method, path }) => `${operation} ${method} ${path}`).sort(),
    );
    expect(new Set(findValues(api.paths, "operationId")).size).toBe(ROUTES.length);
  });

  test("refers only to what it holds, and holds only what it refers to", () => {
    const names = new Set(findValues(api, "$ref").map((reference) => String(reference).replace(COMPONENTS, "")));
    expect([...names].sort()).toEqual(Object.keys(api.components.schemas).sort());
  });

  test("names the path's parameters, all required", () => {
    const { parameters } = api.paths["/v1/jobs/{job_id}/artifacts/{artifact_id}"].get;
    expect(parameters).toMatchObject([
      { name: "job_id", in: "path", required: true },
      { name: "artifact_id", in: "path", required: true },
    ]);
  });

  test("says what a query takes after parsing", () => {
    const [limit, after] = api.paths["/v1/jobs"].get.parameters;
    expect(limit).toMatchObject({ name: "limit", in: "query", schema: { type: "integer", minimum: 1, maximum: 100 } });
    expect(after).toMatchObject({ name: "after", in: "query", schema: { type: "string" } });
  });

  test("lists under each status the codes that have it", () => {
    for (const [status, { description }] of Object.entries<{ description: string }>(
      api.paths["/v1/jobs"].post.responses,
    )) {
      if (status === "200" || status === "202") continue;
      for (const code of description.split(", "))
        expect(FAULTS).toHaveProperty(code, expect.objectContaining({ status: Number(status) }));
    }
    for (const path of ["/v1/jobs", "/v1/jobs/{job_id}"])
      expect(api.paths[path].get.responses["403"].description).toContain("ACCESS_DENIED");
  });

  test("has a request id in every response", () => {
    const responses = findValues(api.paths, "responses").flatMap((each) => Object.values(each ?? {}));
    expect(responses.length).toBeGreaterThan(ROUTES.length);
    for (const response of responses) expect(response).toHaveProperty(["headers", "x-request-id"]);
  });

  test("holds no traces of the library that made it", () => {
    for (const key of ["$id", "$schema", "propertyNames"]) expect(findValues(api.components.schemas, key)).toEqual([]);
    for (const schema of Object.values(api.components.schemas)) expect(schema).not.toHaveProperty("id");
    expect(JSON.stringify(api)).not.toContain(String(Number.MAX_SAFE_INTEGER));
  });

  test("is compiled whole by a validator of JSON Schema 2020-12", () => {
    for (const name of Object.keys(api.components.schemas)) expect(validatorOf(name)).toBeTypeOf("function");
  });
});

describe("the schemas", () => {
  const service = createTestService();

  test("take the job of the README and their own examples", () => {
    const isJob = validatorOf("JobRequest");
    const readme = readFileSync(join(import.meta.dirname, "..", "..", "..", "README.md"), "utf8");
    const posted = [...readme.matchAll(/-d '(\{.*?\})'/gs)].map(([, json = ""]) => JSON.parse(json));
    const { examples } = api.components.schemas.JobRequest;
    expect(posted.length).toBeGreaterThan(0);
    expect(examples.length).toBeGreaterThan(0);
    for (const job of [...posted, ...examples]) expect(isJob(job) || isJob.errors).toBe(true);
  });

  test.each([
    {},
    { calls: [] },
    { calls: [{}] },
    { calls: [{ tool: "create_pdf" }] },
    { ...JOB, extra: 1 },
    { ...JOB, limits: { max_calls: 0 } },
  ])("refuse what the service refuses: %j", async (job) => {
    expect(validatorOf("JobRequest")(job)).toBe(false);
    expect((await service.send(jobEvent(job))).statusCode).toBe(400);
  });

  test("fit what the service answers", async () => {
    const ran = jsonOf(await service.send(jobEvent(JOB)));
    const path = `/v1/jobs/${ran.job_id}`;
    const get = async (given: { path: string; query?: Record<string, string> }) =>
      jsonOf(await service.send(httpEvent(given)));
    const answers = [
      ["JobReport", ran],
      ["JobReport", await get({ path })],
      ["JobList", await get({ path: "/v1/jobs" })],
      ["Health", await get({ path: "/v1/health" })],
      ["ToolGroups", await get({ path: "/v1/tools" })],
      ["ModelTools", await get({ path: "/v1/tools", query: { format: "mcp" } })],
      ["SkillList", await get({ path: "/v1/skills" })],
      ["Skill", await get({ path: "/v1/skills/builtin/status-update" })],
      ["Problem", await get({ path: "/nothing" })],
      ["Problem", jsonOf(await service.send(jobEvent({})))],
    ] as const;
    for (const [name, answer] of answers) {
      const validate = validatorOf(name);
      expect([name, validate(answer) || validate.errors]).toEqual([name, true]);
    }
  });

  test("are served", async () => {
    const served = jsonOf(await service.send(httpEvent({ path: "/openapi.json" })));
    expect(served).toEqual(JSON.parse(JSON.stringify(toOpenApi("0.0.0"))));
  });
});
