import { describe, expect, test } from "vitest";
import { readDeploySettings, toEnvironments } from "../../cdk/deploy-settings.ts";
import { ROUTE_GROUPS } from "../../functions/contract/auth.ts";
import { LimitsInput } from "../../functions/contract/limits.ts";
import { OperatorSettings } from "../../functions/contract/settings.ts";

const violationPaths = (written: Readonly<Record<string, unknown>>) =>
  readDeploySettings(written).violations.map(({ path }) => path);

test("takes no settings at all, and then approves nothing and asks for IAM", () => {
  expect(readDeploySettings({})).toMatchObject({
    settings: { tools: [], auth: "iam", artifactDays: 7, skills: "skills" },
    violations: [],
  });
});

test("lists every mistake of every kind together", () => {
  const { settings, violations } = readDeploySettings({
    tools: ["status_update"],
    auth: "open",
    artifactDays: 0,
    artefactDays: 3,
    limits: { job_timeout_ms: 60_000 },
  });
  expect(settings).toBeUndefined();
  const expected = ["/artefactDays", "/artifactDays", "/auth", "/limits/job_timeout_ms", "/tools/0"];
  expect(violations.map(({ path }) => path).sort()).toEqual(expected);
});

test("refuses an approval that would stop the function at its start", () => {
  expect(violationPaths({ tools: ["local", "create_pdf", "locl"] })).toEqual(["/tools/1", "/tools/2"]);
  expect(violationPaths({ tools: ["local", "create_pdf@1"] })).toEqual([]);
});

describe("an approval of what is not there", () => {
  const DIGEST = "3f9a0c1b2d4e".padEnd(64, "0");
  const approvable = { refs: ["create_pdf@1", "status_update@1"], servers: ["github"] };
  const messages = (...tools: readonly string[]) =>
    readDeploySettings({ tools }, approvable).violations.map(({ path, message }) => `${path}: ${message}`);

  test("is refused: another version, a misspelt name, a server that is not declared", () => {
    expect(messages("create_pdf@2", "local", "status_updat@1", "gitlab/search@3f9a0c1b2d4e")).toEqual([
      "/tools/0: create_pdf@2 is in none of the repositories; there is create_pdf@1",
      "/tools/2: status_updat@1 is in none of the repositories; there are create_pdf@1, status_update@1",
      '/tools/3: gitlab/search@3f9a0c1b2d4e: no MCP server "gitlab" is declared; there is github',
    ]);
  });

  test("is none of what is there, nor of what a declared server may lend", () => {
    const lent = [`github/search@${DIGEST.slice(0, 12)}`, `github/search@${DIGEST}`];
    expect(messages("local", "create_pdf@1", "status_update@1", ...lent)).toEqual([]);
  });
});

test.each([
  ["a job that outlives the function", { job_timeout_ms: 22_001 }, ["/limits/job_timeout_ms"]],
  ["a call as long as the longest job", { call_timeout_ms: 300_000 }, ["/limits/call_timeout_ms"]],
])("refuses %s", (_, limits, paths) => {
  expect(violationPaths({ limits })).toEqual(paths);
});

test("a limit that cannot be read hides nothing of the others", () => {
  const limits = { max_calls: "4", call_timeout_ms: 5_000, job_timeout_ms: 60_000, max_artifact_bytes: 2e9 };
  expect(violationPaths({ limits }).toSorted()).toEqual([
    "/limits/job_timeout_ms",
    "/limits/max_artifact_bytes",
    "/limits/max_artifact_bytes",
    "/limits/max_calls",
  ]);
});

describe("more bytes than a function of that memory can hold, or an answer carry,", () => {
  const MEBI = 1024 * 1024;

  test.each([
    ["max_output_bytes", 3 * MEBI],
    ["max_total_artifact_bytes", 128 * MEBI],
  ])("are refused: %s", (name, most) => {
    expect(violationPaths({ limits: { [name]: most } })).toEqual([]);
    expect(violationPaths({ limits: { [name]: most + 1 } })).toEqual([`/limits/${name}`]);
  });

  test("are refused of a single file, which may have as many as all", () => {
    const limits = (bytes: number) => ({ max_artifact_bytes: bytes, max_total_artifact_bytes: 20 * MEBI });
    expect(violationPaths({ limits: limits(20 * MEBI) })).toEqual([]);
    expect(violationPaths({ limits: limits(20 * MEBI + 1) })).toEqual(["/limits/max_artifact_bytes"]);
  });
});

test.each(["https://localhost/", "https://127.0.0.1/", "https://10.0.0.1/", "https://[::1]/"])(
  "refuses the issuer %s, whose keys API Gateway cannot fetch",
  (issuer) => {
    expect(violationPaths({ auth: { issuer, audience: ["a"] } })).toEqual(["/auth/issuer"]);
  },
);

test("leaves room for the tag by which a bucket is emptied", () => {
  const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));
  expect(violationPaths({ tags: tags(50) })).toEqual([]);
  expect(violationPaths({ tags: tags(49), dataAtRemoval: "delete" })).toEqual([]);
  expect(violationPaths({ tags: tags(50), dataAtRemoval: "delete" })).toEqual(["/tags"]);
});

test("takes a call that only an asynchronous job has the time for", () => {
  expect(violationPaths({ limits: { call_timeout_ms: 299_999 } })).toEqual([]);
  expect(violationPaths({ limits: { call_timeout_ms: 59_999 }, asyncJobSeconds: 60 })).toEqual([]);
  expect(violationPaths({ limits: { call_timeout_ms: 60_000 }, asyncJobSeconds: 60 })).toEqual([
    "/limits/call_timeout_ms",
  ]);
  expect(violationPaths({ limits: { call_timeout_ms: 20_000 }, asyncJobSeconds: 1 })).toEqual([
    "/limits/call_timeout_ms",
  ]);
});

test("takes the longest job that the function can wait for", () => {
  expect(violationPaths({ limits: { job_timeout_ms: 22_000 } })).toEqual([]);
});

test("the longest settings fit into what Lambda takes as environment, names and values together", () => {
  const limits = Object.fromEntries(LimitsInput.keyof().options.map((name) => [name, 604_800]));
  const auth = {
    issuer: `https://${"i".repeat(492)}`,
    audience: Array.from({ length: 8 }, (_, index) => `${index}`.padEnd(200, "a")),
    scopes: Object.fromEntries(ROUTE_GROUPS.map((group) => [group, "s".repeat(100)])),
  };
  const settings = {
    tools: Array.from({ length: 1_000 }, () => "t".repeat(300)),
    limits,
    auth,
    debounceSeconds: 0.1 + 0.2,
  };
  const environments = toEnvironments(OperatorSettings.parse(settings));
  expect(OperatorSettings.safeParse({ auth: { ...auth, issuer: `${auth.issuer}i` } }).success).toBe(false);
  // The name of a bucket, and three addresses of queues with their names.
  const places = 63 + 3 * 190;
  for (const environment of Object.values(environments)) {
    const bytes = Buffer.byteLength(Object.entries(environment).flat().join(""));
    expect(bytes + places).toBeLessThanOrEqual(4096);
  }
});

test("refuses a longest wait that is shorter than the window, beside what else is wrong", () => {
  const context = { debounceSeconds: 3, longestWaitSeconds: 2, limits: { job_timeout_ms: 60_000 } };
  expect(violationPaths(context).toSorted()).toEqual(["/limits/job_timeout_ms", "/longestWaitSeconds"]);
});
