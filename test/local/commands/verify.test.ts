import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  DEMO,
  pinAsIs,
  pinnedRoot,
  SHIPPED_SKILLS,
  temporaryDirectory,
  toolJson,
  writeFiles,
} from "../../functions/repository/skills-on-disk.ts";
import { runCommand } from "./run-command.ts";

const EDITED = ["acme/demo/SKILL.md", "acme/demo/extra.md", "acme/demo/tool.json", "acme/gone.md"];

function editedRoot(): string {
  const root = pinnedRoot(DEMO);
  writeFiles(root, { "acme/demo/SKILL.md": "x", "acme/demo/extra.md": "x", "acme/gone.md": "x" });
  rmSync(join(root, "acme/demo/tool.json"));
  return root;
}

test("without a directory the project's own skills are verified", async () => {
  const { exitCode, stdout, stderr } = await runCommand(["verify"], join(SHIPPED_SKILLS, ".."));
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(stdout).toMatch(/^\d+ files are as pinned\n$/);
});

test("every difference of an edited directory is listed at once", async () => {
  const { exitCode, stdout } = await runCommand(["verify", editedRoot()]);
  expect(
    stdout
      .split("\n")
      .slice(0, 4)
      .map((line) => line.split(" ")[0]),
  ).toEqual(EDITED);
  expect(stdout).toContain("4 differences");
  expect(exitCode).toBe(1);
});

test("--json gives the same as data", async () => {
  const edited = await runCommand(["verify", editedRoot(), "--json"]);
  const answer = JSON.parse(edited.stdout);
  expect(edited.exitCode).toBe(1);
  expect(answer).toMatchObject({ ok: false, refusals: [] });
  expect(answer.differences.map(({ path }: { path: string }) => path)).toEqual(EDITED);
  const pinned = await runCommand(["verify", pinnedRoot(DEMO), "--json"]);
  expect(JSON.parse(pinned.stdout)).toEqual({ ok: true, files: 4, differences: [], refusals: [] });
});

test("the directory may be relative to where the command is run", async () => {
  const root = pinnedRoot(DEMO);
  expect(await runCommand(["verify", "."], root)).toMatchObject({ exitCode: 0 });
});

describe("files that are as pinned and would still be refused", () => {
  test("are told with their reason", async () => {
    const root = pinnedRoot({ ...DEMO, "acme/demo/tool.json": toolJson({ handler: "shell" }) });
    const { exitCode, stdout } = await runCommand(["verify", root]);
    expect(stdout).toMatch(/acme\/demo\/tool\.json: \/handler: /);
    expect(exitCode).toBe(1);
  });

  test("include a schema that only a call would compile", async () => {
    const input_schema = { type: "object", properties: { a: { type: "nonsense" } } };
    const root = pinnedRoot({ ...DEMO, "acme/demo/tool.json": toolJson({ input_schema }) });
    const { exitCode, stdout } = await runCommand(["verify", root]);
    expect(stdout).toMatch(/acme\/demo\/tool\.json: \/input_schema cannot be used/);
    expect(exitCode).toBe(1);
  });
});

describe("pins that cannot be read", () => {
  test.each([
    ["missing", (path: string) => rmSync(path)],
    ["edited", (path: string) => writeFileSync(path, '{"version":1,"repositories":{}}')],
    ["no JSON", (path: string) => writeFileSync(path, "pins")],
  ])("%s: refused by name", async (_, spoil) => {
    const root = pinnedRoot(DEMO);
    spoil(join(root, "pins.json"));
    const { exitCode, stderr } = await runCommand(["verify", root]);
    expect(stderr).toMatch(/^pins\.json.*\(REPOSITORY_REFUSED\)\n$/);
    expect(exitCode).toBe(1);
    const json = await runCommand(["verify", root, "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, error: { code: "REPOSITORY_REFUSED" } });
  });
});

test("a directory that is not there is told by name, not as missing pins", async () => {
  const gone = join(temporaryDirectory(), "gone");
  const { exitCode, stderr } = await runCommand(["verify", gone]);
  expect(stderr).toContain(gone);
  expect(exitCode).toBe(1);
});

test("pins that were made anew verify again", async () => {
  const root = editedRoot();
  rmSync(join(root, "acme/gone.md"));
  pinAsIs(root);
  expect((await runCommand(["verify", root])).stdout).not.toContain("pinned in");
});
