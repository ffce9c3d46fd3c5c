import { expect, test } from "vitest";
import { parseDeploySettings } from "../../cdk/deploy-settings.ts";
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
  const expected = ["/artefactDays", "/artifactDays", "/auth", "/limits/job_timeout_ms", "/tools"];
  expect(violations.map(({ path }) => path).sort()).toEqual(expected);
  for (const path of expected) expect(parsed.ok ? "" : parsed.fault.message).toContain(`\n  ${path}: `);
});

test("refuses an approval that would stop the function at its start", () => {
  expect(violationPaths({ tools: ["local", "create_pdf"] })).toEqual(["/tools"]);
  expect(violationPaths({ tools: ["local", "create_pdf@1"] })).toEqual([]);
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

test("refuses more approvals than a function's environment can hold", () => {
  const refs = Array.from({ length: 150 }, (_, index) => `acme/search_issues_number_${index}@3f9a0c1b2d4e`);
  expect(violationPaths({ tools: refs })).toEqual(["/tools"]);
  expect(violationPaths({ tools: refs.slice(0, 60) })).toEqual([]);
});
