import { describe, expect, test } from "vitest";
import { findSettingsWarnings } from "../../cdk/warnings.ts";
import { OperatorSettings } from "../../functions/contract/settings.ts";

const warningsOf = (settings: unknown) => findSettingsWarnings(OperatorSettings.parse(settings));
const DIGEST = "3f9a0c1b2d4e".padEnd(64, "0");

test("an approval of a lent tool by twelve digits is warned of, with where the whole stands", () => {
  const tools = ["local", "create_pdf@1", `github/search@${DIGEST}`, "github/search@3f9a0c1b2d4e"];
  const [warning, ...others] = warningsOf({ tools });
  expect(others).toEqual([]);
  expect(warning).toMatchObject({ id: "skillbroker:short-approval", path: "/tools/3" });
  expect(warning?.message).toMatch(/^github\/search@3f9a0c1b2d4e binds 12 of the 64 digits .*skillbroker tools/);
});

describe("scopes", () => {
  const auth = (scopes: object) => ({ auth: { issuer: "https://tokens.acme.test/", audience: ["a"], scopes } });

  test("that are one for several groups are warned of, each once, with the groups", () => {
    const warnings = warningsOf(auth({ run: "jobs", read: "jobs", notify: "ops", operate: "ops" }));
    expect(warnings.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      "/auth/scopes: jobs stands for run and read: who may do the one may do the other",
      "/auth/scopes: ops stands for notify and operate: who may do the one may do the other",
    ]);
  });

  test("of their own are not, nor is there anything to say without tokens", () => {
    expect([...warningsOf(auth({ run: "jobs" })), ...warningsOf({}), ...warningsOf({ auth: "none" })]).toEqual([]);
  });
});
