import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  copyOfShippedSkills,
  DEMO,
  pinAsIs,
  skillMd,
  temporaryDirectory,
  writeFiles,
} from "../../functions/repository/skills-on-disk.ts";
import { runCommand } from "./run-command.ts";

/** A project with the shipped skills and one repository more. */
function project(context: object = { tools: ["local", "data_table@1"] }): string {
  const root = temporaryDirectory();
  renameSync(copyOfShippedSkills(), join(root, "skills"));
  writeFiles(join(root, "skills"), DEMO);
  pinAsIs(join(root, "skills"));
  writeFileSync(join(root, "cdk.json"), JSON.stringify({ context }));
  return root;
}

describe("every repository", () => {
  test("is shown with its skills, refs and digests", async () => {
    const { exitCode, stdout } = await runCommand(["describe"], project());
    expect(stdout).toMatch(/^acme: 1 skills, digest [0-9a-f]{64}$/m);
    for (const text of ["builtin/status-update", "status_update@1", "acme/demo", "demo@1"])
      expect(stdout).toContain(text);
    expect(exitCode).toBe(0);
  });

  test("is data with --json", async () => {
    const { stdout } = await runCommand(["describe", "--json"], project({ repositories: ["acme"] }));
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
    expect(JSON.parse(stdout)).toEqual({
      repositories: [
        {
          name: "acme",
          status: "loaded",
          digest,
          skills: [{ name: "acme/demo", description: "Makes demo.", ref: "demo@1", digest }],
        },
      ],
    });
  });

  test("is shown with its reasons when it is refused, beside those that are loaded", async () => {
    const root = project();
    writeFiles(join(root, "skills"), { "acme/demo/SKILL.md": "x" });
    const { exitCode, stdout } = await runCommand(["describe"], root);
    expect(stdout).toContain("acme: REFUSED");
    expect(stdout).toContain("acme/demo/SKILL.md was changed");
    expect(stdout).toContain("status_update@1");
    expect(exitCode).toBe(1);
  });
});

describe("one skill", () => {
  test("is shown in full: digest, files, tool set, instructions", async () => {
    const { exitCode, stdout } = await runCommand(["describe", "acme/demo"], project());
    expect(stdout).toMatch(/^acme\/demo \(demo@1, not approved\)\nMakes demo\.\n/);
    for (const text of ["templates/document.md", "# Body", "digest "]) expect(stdout).toContain(text);
    expect(exitCode).toBe(0);
  });

  test("cannot act on the terminal", async () => {
    const root = project();
    const text = skillMd("demo").replace("Makes demo.", "Fine\u202e.").concat("a\u009b31m\u007f\tb\n");
    writeFiles(join(root, "skills"), { "acme/demo/SKILL.md": text });
    pinAsIs(join(root, "skills"));
    const { exitCode, stdout } = await runCommand(["describe", "acme/demo"], root);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("Fine\\u{202e}.");
    expect(stdout).toContain("a\\u{009b}31m\\u{007f}\tb");
    expect(stdout.replace(/[\n\t]/g, "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  test.each(["acme/ghost", "ghost", "a/b/c", "../x"])("%s is no skill", async (name) => {
    const { exitCode, stderr } = await runCommand(["describe", name], project());
    expect(stderr).toContain("SKILL_NOT_FOUND");
    expect(exitCode).toBe(1);
  });
});

describe("one tool", () => {
  test("is shown with its digest and its schema", async () => {
    const { exitCode, stdout } = await runCommand(["describe", "data_table@1"], project());
    expect(stdout).toMatch(/^data_table@1 \(builtin\)\n/);
    expect(stdout).toContain('"columns"');
    expect(exitCode).toBe(0);
  });

  test("that is not approved is not known", async () => {
    const { exitCode, stderr } = await runCommand(["describe", "demo@1"], project());
    expect(stderr).toContain("TOOL_UNKNOWN");
    expect(exitCode).toBe(1);
  });
});
