import { describe, expect, test } from "vitest";
import { parseSettings } from "../../../functions/contract/settings.ts";
import "../../kit/to-fail.ts";

function violationsOf(context: Readonly<Record<string, unknown>>): readonly string[] {
  const parsed = parseSettings(context);
  return parsed.ok ? [] : parsed.fault.violations.map(({ path }) => path);
}

describe("settings", () => {
  test("left out approve nothing and open nothing", () => {
    expect(parseSettings({})).toEqual({
      ok: true,
      value: { tools: [], skills: "skills", auth: "iam", artifactDays: 7, limits: {} },
    });
  });

  test("are taken as they are written", () => {
    const written = {
      tools: ["local", "status_update@1"],
      skills: "elsewhere",
      repositories: ["builtin", "acme"],
      auth: "none",
      artifactDays: 30,
      limits: { max_calls: 4 },
    };
    expect(parseSettings(written)).toEqual({ ok: true, value: written });
  });

  test("are refused with all their mistakes together", () => {
    const context = {
      tools: "local",
      auth: "open",
      artifactDays: 0,
      limits: { max_calls: -1, calls: 3 },
      repositories: ["Acme"],
    };
    expect(violationsOf(context).toSorted()).toEqual([
      "/artifactDays",
      "/auth",
      "/limits/calls",
      "/limits/max_calls",
      "/repositories/0",
      "/tools",
    ]);
    const parsed = parseSettings(context);
    expect(parsed).toFail("REQUEST_INVALID");
    for (const path of violationsOf(context)) expect(!parsed.ok && parsed.fault.message).toContain(path);
  });

  test.each(["tool", "Tools", "artifact_days", "constructor", "toString", "hasOwnProperty"])(
    "with the unknown word %s are refused by it",
    (word) => {
      expect(violationsOf({ [word]: [] })).toEqual([`/${word}`]);
    },
  );

  test("with a key that reaches for a prototype are refused", () => {
    expect(parseSettings(JSON.parse('{"__proto__":{"tools":["local"]}}'))).toFail("REQUEST_INVALID");
  });

  test("are not taken from a prototype", () => {
    const inheriting: Readonly<Record<string, unknown>> = Object.create({ tools: ["local"], auth: "none" });
    expect(parseSettings(inheriting)).toMatchObject({ ok: true, value: { tools: [], auth: "iam" } });
  });

  test.each([
    "cli-telemetry",
    "@aws-cdk/core:target-partitions",
    "aws:cdk:enable-path-metadata",
    "availability-zones:account=1:region=x",
    "acknowledged-issue-numbers",
  ])("pass over the CDK's own key %s", (key) => {
    expect(parseSettings({ [key]: { anything: 1 }, tools: ["local"] })).toMatchObject({
      ok: true,
      value: { tools: ["local"] },
    });
  });

  test.each([
    { tools: [""] },
    { tools: ["x".repeat(301)] },
    { tools: [null] },
    { tools: Array.from({ length: 1_001 }, () => "local") },
    { skills: "" },
    { auth: "IAM" },
    { artifactDays: 1.5 },
    { artifactDays: "7" },
    { artifactDays: 3_651 },
    { limits: null },
    { limits: { link_seconds: 7 * 24 * 3600 + 1 } },
    { repositories: ["../acme"] },
    { repositories: ["acme-"] },
  ])("out of range are refused: %j", (context) => {
    expect(parseSettings(context)).toFail("REQUEST_INVALID");
  });
});
