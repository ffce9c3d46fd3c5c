import { describe, expect, test } from "vitest";
import { parseDeploySettings, toEnvironments } from "../../cdk/deploy-settings.ts";
import { LimitsInput } from "../../functions/contract/limits.ts";
import { OperatorSettings, ROUTE_GROUPS } from "../../functions/contract/settings.ts";
import "../kit/to-fail.ts";

const violationPaths = (context: Readonly<Record<string, unknown>>) => {
  const parsed = parseDeploySettings(context);
  return parsed.ok ? [] : parsed.fault.violations.map(({ path }) => path);
};

test("takes no settings at all, and then approves nothing and asks for IAM", () => {
  const parsed = parseDeploySettings({ "cli-telemetry": false, "aws:cdk:enable-path-metadata": true });
  expect(parsed).toMatchObject({ ok: true, value: { tools: [], auth: "iam", artifactDays: 7, skills: "skills" } });
});

test("lists every mistake of every kind together, in the message too", () => {
  const parsed = parseDeploySettings({
    tools: ["status_update"],
    auth: "open",
    artifactDays: 0,
    artefactDays: 3,
    limits: { job_timeout_ms: 60_000 },
  });
  expect(parsed).toFail("REQUEST_INVALID");
  const violations = parsed.ok ? [] : parsed.fault.violations;
  const expected = ["/artefactDays", "/artifactDays", "/auth", "/limits/job_timeout_ms", "/tools/0"];
  expect(violations.map(({ path }) => path).sort()).toEqual(expected);
  for (const path of expected) expect(parsed.ok ? "" : parsed.fault.message).toContain(`\n  ${path}: `);
});

test("refuses an approval that would stop the function at its start", () => {
  expect(violationPaths({ tools: ["local", "create_pdf", "locl"] })).toEqual(["/tools/1", "/tools/2"]);
  expect(violationPaths({ tools: ["local", "create_pdf@1"] })).toEqual([]);
});

describe("an approval of what is not there", () => {
  const DIGEST = "3f9a0c1b2d4e".padEnd(64, "0");
  const approvable = { refs: ["create_pdf@1", "status_update@1"], servers: ["github"] };
  const messages = (...tools: readonly string[]) => {
    const parsed = parseDeploySettings({ tools }, approvable);
    return parsed.ok ? [] : parsed.fault.violations.map(({ path, message }) => `${path}: ${message}`);
  };

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
  ["a call as long as its job", { call_timeout_ms: 20_000 }, ["/limits/call_timeout_ms"]],
  ["a job shorter than a call", { job_timeout_ms: 4_000 }, ["/limits/call_timeout_ms"]],
])("refuses %s", (_, limits, paths) => {
  expect(violationPaths({ limits })).toEqual(paths);
});

test("takes the longest job that the function can wait for", () => {
  expect(violationPaths({ limits: { job_timeout_ms: 22_000 } })).toEqual([]);
});

test("the longest settings fit into what Lambda takes as environment, names and values together", () => {
  const limits = Object.fromEntries(LimitsInput.keyof().options.map((name) => [name, 604_800]));
  const auth = {
    issuer: `https://${"i".repeat(492)}`,
    audience: Array.from({ length: 8 }, () => "a".repeat(200)),
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
