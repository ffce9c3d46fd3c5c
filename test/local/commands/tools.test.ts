import { describe, expect, test } from "vitest";
import { ModelTools, ToolGroups } from "../../../functions/contract/catalog.ts";
import { runCli } from "../../kit/command-line.ts";
import { temporaryProject } from "../../kit/local-service.ts";

describe("tools", () => {
  test("lists refs ready to copy, by where they come from", async () => {
    const cwd = temporaryProject({ tools: ["local", "status_update@1"] });
    const { code, out, err } = await runCli(["tools"], { cwd });
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(
      /^bundled .*\n {2}create_pdf@1 .*\n {2}make_plan@1 .*\n\nrepository .*\n {2}status_update@1 .*\n$/,
    );
  });

  test("says what to do when nothing is approved", async () => {
    const { code, out } = await runCli(["tools"], { cwd: temporaryProject({}) });
    expect(code).toBe(0);
    expect(out).toMatch(/^Nothing is approved; .*cdk\.json/);
  });

  test("prints the whole list as JSON", async () => {
    const { out } = await runCli(["tools", "--json"], { cwd: temporaryProject() });
    expect(ToolGroups.parse(JSON.parse(out)).bundled.map(({ ref }) => ref)).toEqual(["create_pdf@1", "make_plan@1"]);
  });

  test.each(["mcp", "anthropic", "openai"])("prints definitions for a model as %s", async (format) => {
    const { code, out } = await runCli(["tools", "--format", format], { cwd: temporaryProject() });
    expect(code).toBe(0);
    expect(ModelTools.parse(JSON.parse(out)).tools).toHaveLength(2);
  });

  test.each(["xml", "", "mcp&x=1", "../health"])("refuses the form %j", async (format) => {
    const ran = await runCli(["tools", "--format", format], { cwd: temporaryProject() });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toMatch(/^[^\n]*\(REQUEST_INVALID\)\n$/);
  });
});
