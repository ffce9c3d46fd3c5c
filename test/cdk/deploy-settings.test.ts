import { describe, expect, test } from "vitest";
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

describe("approvals fill a function's environment", () => {
  /** As many bytes of JSON as wanted, a ref of 50 each and one for what is left. */
  const refsOf = (bytes: number) => {
    const refs = Array.from({ length: Math.floor(bytes / 53) - 1 }, (_, index) => refOf(50, index));
    const left = bytes - JSON.stringify(refs).length;
    return [...refs, refOf(left - 3, refs.length)];
  };
  const refOf = (length: number, index: number) =>
    `s/${"t".repeat(length - 20)}${String(index).padStart(5, "0")}@3f9a0c1b2d4e`;
  /** Names and values of what HTTP is told beside the approvals, with the longest name of a bucket and addresses of queues. */
  const OTHERS =
    "BUCKET_NAME".length +
    63 +
    "JOBS_QUEUE_URL".length +
    160 +
    "NOTIFICATIONS_QUEUE_URL".length +
    160 +
    "APPROVED_TOOLS".length +
    'LIMITS{}AUTH"iam"ASYNC_JOB_SECONDS300ARTIFACT_DAYS7MAX_LIST_AGE_SECONDS86400'.length;

  test("up to 4 KiB, and not one byte more", () => {
    expect(JSON.stringify(refsOf(3_000))).toHaveLength(3_000);
    expect(violationPaths({ tools: refsOf(4_096 - OTHERS) })).toEqual([]);
    expect(violationPaths({ tools: refsOf(4_097 - OTHERS) })).toEqual(["/tools"]);
  });

  test("and every function that they do not fit into is named, in one line", () => {
    const parsed = parseDeploySettings({ tools: refsOf(5_000) });
    expect(violationPaths({ tools: refsOf(5_000) })).toEqual(["/tools"]);
    expect(parsed.ok ? "" : parsed.fault.message).toMatch(
      /for http and \d+ bytes of environment for worker and \d+ bytes of environment for refresh with/,
    );
  });
});

test("refuses a longest wait that is shorter than the window, beside what else is wrong", () => {
  const context = { debounceSeconds: 3, longestWaitSeconds: 2, limits: { job_timeout_ms: 60_000 } };
  expect(violationPaths(context).toSorted()).toEqual(["/limits/job_timeout_ms", "/longestWaitSeconds"]);
});
