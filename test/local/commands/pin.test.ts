import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  DEMO,
  type Files,
  pinnedRoot,
  skillMd,
  statusesOf,
  temporaryDirectory,
  toolJson,
  writeFiles,
} from "../../functions/repository/skills-on-disk.ts";
import { runCommand } from "./run-command.ts";

function unpinnedRoot(files: Files = DEMO): string {
  const root = temporaryDirectory();
  writeFiles(root, files);
  return root;
}

function pinsText(root: string): string | undefined {
  const path = join(root, "pins.json");
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

/** A root with one skill added, one changed and one removed since it was pinned, and one as it was. */
function movedRoot(): string {
  const root = pinnedRoot({
    ...DEMO,
    "acme/changed/SKILL.md": skillMd("changed"),
    "acme/removed/SKILL.md": skillMd("removed"),
  });
  writeFiles(root, { "acme/added/SKILL.md": skillMd("added"), "acme/changed/notes.md": "x" });
  rmSync(join(root, "acme/removed"), { recursive: true });
  return root;
}

test("what was pinned loads and verifies", async () => {
  const root = unpinnedRoot();
  expect(await runCommand(["pin", root])).toMatchObject({ exitCode: 0, stderr: "" });
  expect(statusesOf(root)).toEqual(["acme loaded"]);
  expect(await runCommand(["verify", root])).toMatchObject({ exitCode: 0 });
});

test("what was added, changed and removed is reported, and nothing else", async () => {
  const { exitCode, stdout } = await runCommand(["pin", movedRoot()]);
  expect(stdout).toMatch(/^added +acme\/added {2}[0-9a-f]{64}\nchanged +acme\/changed .*\nremoved +acme\/removed .*\n/);
  expect(stdout).not.toContain("acme/demo");
  expect(exitCode).toBe(0);
});

test("a second time there is nothing to report, and the file is byte for byte the same", async () => {
  const root = unpinnedRoot();
  await runCommand(["pin", root]);
  const before = pinsText(root);
  expect((await runCommand(["pin", root])).stdout).toBe("every skill was pinned already\n");
  expect(pinsText(root)).toBe(before);
});

test("--json gives changes and refusals as data", async () => {
  const pinned = JSON.parse((await runCommand(["pin", movedRoot(), "--json"])).stdout);
  expect(pinned).toEqual({
    ok: true,
    refusals: [],
    changes: [
      { skill: "acme/added", change: "added", digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
      { skill: "acme/changed", change: "changed", digest: expect.any(String) },
      { skill: "acme/removed", change: "removed", digest: expect.any(String) },
    ],
  });
  const refused = await runCommand(["pin", unpinnedRoot({ "acme/demo/README.md": "x" }), "--json"]);
  expect(JSON.parse(refused.stdout)).toMatchObject({ ok: false, refusals: ["acme/demo/SKILL.md is missing"] });
  expect(refused.exitCode).toBe(1);
});

test("--dry-run tells the changes and writes nothing", async () => {
  for (const root of [unpinnedRoot(), movedRoot()]) {
    const before = pinsText(root);
    const { exitCode, stdout } = await runCommand(["pin", root, "--dry-run"]);
    expect(stdout).toContain("added");
    expect(exitCode).toBe(0);
    expect(pinsText(root)).toBe(before);
  }
});

test("pins that were edited by hand are written anew, and every skill counts as added", async () => {
  const root = pinnedRoot(DEMO);
  writeFileSync(join(root, "pins.json"), '{"version":1,"repositories":{}}');
  expect((await runCommand(["pin", root])).stdout).toMatch(/^added +acme\/demo /);
  expect(statusesOf(root)).toEqual(["acme loaded"]);
});

describe("nothing is written when a skill would be refused", () => {
  test.each([
    ["a file-manager dropping", { "acme/demo/.DS_Store": "x" }, "acme/demo/.DS_Store"],
    ["a dropping beside the repositories", { ".DS_Store": "x" }, ".DS_Store"],
    ["a resource fork", { "acme/demo/._SKILL.md": "x" }, "acme/demo/._SKILL.md"],
    ["a file that belongs to no skill", { "acme/README.md": "x" }, "acme/README.md"],
    ["a fault in SKILL.md", { "acme/demo/SKILL.md": "x" }, "acme/demo/SKILL.md:1:"],
    ["a directory that has another name", { "acme/other/SKILL.md": skillMd("demo") }, "name-directory"],
    ["an unknown handler", { "acme/demo/tool.json": toolJson({ handler: "shell" }) }, "acme/demo/tool.json: /handler"],
    ["a repository with a bad name", { "Acme_2/demo/SKILL.md": skillMd("demo") }, "Acme_2/"],
    [
      "a schema that cannot be compiled",
      { "acme/demo/tool.json": toolJson({ input_schema: { type: "object", required: "title" } }) },
      "acme/demo/tool.json: /input_schema",
    ],
  ])("%s, which is named", async (_, files, named) => {
    const root = pinnedRoot(DEMO);
    const before = pinsText(root);
    writeFiles(root, files);
    const { exitCode, stdout } = await runCommand(["pin", root]);
    expect(stdout).toContain(named);
    expect(stdout).toContain("nothing was pinned");
    expect(exitCode).toBe(1);
    expect(pinsText(root)).toBe(before);
  });

  test("each reason is given once, and all of them together", async () => {
    const root = unpinnedRoot({ ...DEMO, "acme/demo/.DS_Store": "x", "acme/stray": "x", "acme/x/SKILL.md": "x" });
    const { stdout } = await runCommand(["pin", root, "--json"]);
    const { refusals } = JSON.parse(stdout);
    expect(new Set(refusals).size).toBe(refusals.length);
    expect(refusals.join("\n")).toContain("acme/demo/.DS_Store");
    expect(refusals.join("\n")).toContain("acme/stray");
  });

  test("a directory without skills, which is most likely the wrong one", async () => {
    const root = temporaryDirectory();
    expect((await runCommand(["pin", root])).exitCode).toBe(1);
    expect(pinsText(root)).toBeUndefined();
  });

  test("the directory of a repository or of a skill in place of the one above them", async () => {
    const root = unpinnedRoot();
    for (const below of ["acme", "acme/demo"]) {
      expect((await runCommand(["pin", join(root, below)])).exitCode).toBe(1);
      expect(pinsText(join(root, below))).toBeUndefined();
    }
  });

  test("a directory that is not there", async () => {
    const { exitCode, stderr } = await runCommand(["pin", join(temporaryDirectory(), "gone")]);
    expect(stderr).toContain("REPOSITORY_REFUSED");
    expect(exitCode).toBe(1);
  });
});

const superuser = process.getuid?.() === 0;

describe("a write that fails", () => {
  /** In a sticky directory everybody can make files, and nobody can replace those of others. */
  const modes = superuser
    ? [["be made", 0o555] as const, ["take the name", 0o1777] as const]
    : [["be made", 0o555] as const];

  test.each(modes)("leaves the old pins and nothing else when the new file cannot %s", async (_, mode) => {
    const root = movedRoot();
    const before = pinsText(root);
    chmodSync(root, mode);
    const { exitCode, stderr } = await asNobody(() => runCommand(["pin", root]));
    chmodSync(root, 0o755);
    expect(stderr).toMatch(/^pins\.json cannot be written.*\(REPOSITORY_REFUSED\)/);
    expect(exitCode).toBe(1);
    expect(pinsText(root)).toBe(before);
    expect(readdirSync(root).toSorted()).toEqual(["acme", "pins.json"]);
  });

  test("is not even tried when a directory has the name of the file", async () => {
    const root = unpinnedRoot({ ...DEMO, "pins.json/keep/SKILL.md": skillMd("keep") });
    const { exitCode, output } = await runCommand(["pin", root]);
    expect(exitCode).toBe(1);
    expect(output).toContain("pins.json");
    expect(readdirSync(root).toSorted()).toEqual(["acme", "pins.json"]);
  });
});

/** The superuser may write everywhere, so the act is done as somebody else. */
async function asNobody<T>(act: () => Promise<T>): Promise<T> {
  if (!superuser) return act();
  process.seteuid?.(65_534);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}

test.each<[string, Files, RegExp]>([
  [
    "a ref that the service has already",
    { "acme/x/SKILL.md": skillMd("x"), "acme/x/tool.json": toolJson({ id: "create_pdf", version: "1" }) },
    /create_pdf@1 .*already taken/,
  ],
  ["a ref that another repository has", { ...both("acme"), ...both("other") }, /both@1 .*already taken/],
  ["a template that is no Mustache", documentOf("{{#a}}"), /document is not valid Mustache/],
  ["a template with a partial", documentOf("# {{> other}}"), /document has a partial/],
  ["a document without a template", documentOf(undefined), /needs the template "document"/],
])("%s is refused before it is pinned", async (_, files, reason) => {
  const root = unpinnedRoot(files);
  const { exitCode, stdout } = await runCommand(["pin", root]);
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(reason);
  expect(stdout).not.toContain("added");
  expect(pinsText(root)).toBeUndefined();
});

function both(repository: string): Files {
  return { [`${repository}/x/SKILL.md`]: skillMd("x"), [`${repository}/x/tool.json`]: toolJson({ id: "both" }) };
}

function documentOf(template: string | undefined): Files {
  const templates = template === undefined ? {} : { templates: { document: "templates/document.md" } };
  return {
    "acme/x/SKILL.md": skillMd("x"),
    "acme/x/tool.json": toolJson({ id: "x", handler: "markdown_document", ...templates }),
    ...(template === undefined ? {} : { "acme/x/templates/document.md": template }),
  };
}
