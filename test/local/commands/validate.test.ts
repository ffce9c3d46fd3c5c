import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { skillMd, temporaryDirectory, writeFiles } from "../../functions/repository/skills-on-disk.ts";
import { runCommand } from "./run-command.ts";

/** The directory of a skill called demo. */
function skillDirectory(text: string | undefined, name = "SKILL.md"): string {
  const root = temporaryDirectory();
  mkdirSync(join(root, "demo"));
  if (text !== undefined) writeFiles(root, { [`demo/${name}`]: text });
  return join(root, "demo");
}

const FOREIGN = skillMd("other", "version: 2", "allowed-tools: Read, Write");

test("a valid skill is told so", async () => {
  const { exitCode, stdout } = await runCommand(["validate", skillDirectory(skillMd("demo"))]);
  expect(stdout).toBe("demo/SKILL.md is valid\n");
  expect(exitCode).toBe(0);
});

test("a strict reading refuses what breaks a rule, every fault with file, line and rule", async () => {
  const { exitCode, stdout } = await runCommand(["validate", skillDirectory(FOREIGN)]);
  expect(stdout).toMatch(/^error demo\/SKILL\.md:2: name-directory: /m);
  expect(stdout).toMatch(/^error demo\/SKILL\.md:4: unknown-field: /m);
  expect(stdout).toMatch(/^error demo\/SKILL\.md:5: allowed-tools-comma: /m);
  expect(exitCode).toBe(1);
});

test("a lenient reading accepts it with warnings", async () => {
  const { exitCode, stdout } = await runCommand(["validate", skillDirectory(FOREIGN), "--lenient"]);
  expect(stdout.match(/^warning demo\/SKILL\.md/gm)).toHaveLength(3);
  expect(stdout).not.toContain("error ");
  expect(exitCode).toBe(0);
});

test("a lenient reading refuses what two programs could read differently", async () => {
  const twice = skillMd("demo", "description: Another.");
  const { exitCode, stdout } = await runCommand(["validate", skillDirectory(twice), "--lenient"]);
  expect(stdout).toContain("duplicate-key");
  expect(exitCode).toBe(1);
});

test("--json gives the diagnostics as data", async () => {
  const { exitCode, stdout } = await runCommand(["validate", skillDirectory(FOREIGN), "--json"]);
  const { ok, diagnostics } = JSON.parse(stdout);
  expect({ ok, exitCode }).toEqual({ ok: false, exitCode: 1 });
  expect(diagnostics[0]).toEqual({
    severity: "error",
    file: "demo/SKILL.md",
    line: 2,
    rule: "name-directory",
    message: expect.any(String),
  });
});

describe("a skill that cannot be read", () => {
  test("names both cases when SKILL.md is written otherwise", async () => {
    const { exitCode, stderr } = await runCommand(["validate", skillDirectory(skillMd("demo"), "SKILL.MD")]);
    expect(stderr).toMatch(/SKILL\.md is missing; SKILL\.MD is there/);
    expect(exitCode).toBe(1);
  });

  test("is told so without SKILL.md, with a directory or a link in its place, and without a directory", async () => {
    const empty = skillDirectory(undefined);
    const directory = skillDirectory("x", "SKILL.md/x");
    const link = skillDirectory(undefined);
    symlinkSync("/etc/passwd", join(link, "SKILL.md"));
    for (const path of [empty, directory, link, join(empty, "gone")]) {
      const { exitCode, stderr } = await runCommand(["validate", path]);
      expect(stderr).toContain("REPOSITORY_REFUSED");
      expect(exitCode).toBe(1);
    }
  });

  test("needs a directory to be named", async () => {
    expect((await runCommand(["validate"])).exitCode).toBe(2);
  });
});
