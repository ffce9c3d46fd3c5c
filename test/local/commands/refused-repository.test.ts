import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type Files,
  pinAsIs,
  skillMd,
  temporaryDirectory,
  toolJson,
  writeFiles,
} from "../../functions/repository/skills-on-disk.ts";
import { runCommand } from "./run-command.ts";

const TABLE: Files = {
  "acme/x/SKILL.md": skillMd("x"),
  "acme/x/tool.json": toolJson({ id: "x", handler: "data_table" }),
};
const INCLUDER: Files = { "acme/i/SKILL.md": skillMd("i", "metadata:", "  includes: x") };

/** A project whose skills are these, all approved. */
function projectOf(files: Files): string {
  const project = temporaryDirectory();
  const skills = join(project, "skills");
  writeFiles(skills, files);
  pinAsIs(skills);
  writeFileSync(join(project, "cdk.json"), JSON.stringify({ context: { tools: ["local", "x@1"] } }));
  return project;
}

function refusedProject(): string {
  const project = projectOf(TABLE);
  appendFileSync(join(project, "skills/acme/x/SKILL.md"), "changed");
  return project;
}

const json = (text: string) => JSON.parse(text);

describe("a skill of a repository that is refused", () => {
  test("is no mistake of who calls it", async () => {
    const { exitCode, stdout } = await runCommand(["run", "x@1", "--json", "--project", refusedProject()]);
    expect([exitCode, json(stdout).error.code]).toEqual([1, "REPOSITORY_REFUSED"]);
    expect(json(stdout).error.message).toContain("acme");
  });

  test("is no mistake of who asks for it", async () => {
    const { exitCode, stdout } = await runCommand(["describe", "acme/x", "--json", "--project", refusedProject()]);
    expect([exitCode, json(stdout).error.code]).toEqual([1, "REPOSITORY_REFUSED"]);
  });

  test("is told of where tools are listed, with the file", async () => {
    const { exitCode, stderr } = await runCommand(["tools", "--project", refusedProject()]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/repository acme is refused: .*acme\/x\/SKILL\.md/);
  });

  test("leaves a ref that nobody approved unknown", async () => {
    const { stdout } = await runCommand(["run", "y@1", "--json", "--project", refusedProject()]);
    expect(json(stdout).error.code).toBe("TOOL_UNKNOWN");
  });
});

test("a skill that includes a callable one has its tool", async () => {
  const project = projectOf({ ...TABLE, ...INCLUDER });
  const { stdout } = await runCommand(["describe", "acme/i", "--json", "--project", project]);
  expect(json(stdout).tool_set).toMatchObject([{ ref: "x@1", via: ["acme/i", "acme/x"], approved: true }]);
});

test("what is printed of a job has no links that end with the command", async () => {
  const project = projectOf(TABLE);
  const plan = ["run", "make_plan@1", "-a", '{"goal":"g","steps":["s"]}', "--out", join(project, "files")];
  const { stdout } = await runCommand([...plan, "--json", "--project", project]);
  const { artifacts, job_id } = json(stdout);
  expect(artifacts).toEqual([expect.not.objectContaining({ url: expect.anything() })]);
  const shown = await runCommand(["jobs", job_id, "--json", "--project", project]);
  expect(json(shown.stdout).artifacts).toEqual(artifacts);
});
