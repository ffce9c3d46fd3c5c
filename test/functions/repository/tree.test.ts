import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { readTree, TREE_LIMITS } from "../../../functions/repository/tree.ts";
import { temporaryDirectory, writeFiles } from "./skills-on-disk.ts";

const SMALL = { maxEntries: 100, maxFileBytes: 8, maxTotalBytes: 20, maxDepth: 3 };

function rootWith(files: Readonly<Record<string, string>>): string {
  const root = temporaryDirectory();
  writeFiles(root, files);
  return root;
}

/** `path` with the reason, as a reader sees it. */
function problemsOf(root: string, limits = TREE_LIMITS): readonly string[] {
  return readTree(root, limits).problems.map(({ path, reason }) => `${path} ${reason}`);
}

function pathsOf(root: string, limits = TREE_LIMITS): readonly string[] {
  return readTree(root, limits).files.map(({ path }) => path);
}

test("reads every file once, with POSIX paths and the bytes as they are", () => {
  const root = rootWith({ "b/y.md": "\r\n\0", "a/deep/er/x.md": "x", "a.md": "" });
  const { files, problems } = readTree(root);
  expect(problems).toEqual([]);
  expect(files.map(({ path, content }) => [path, Buffer.from(content).toString()])).toEqual([
    ["a/deep/er/x.md", "x"],
    ["a.md", ""],
    ["b/y.md", "\r\n\0"],
  ]);
});

describe("what is not a regular file", () => {
  test("a link to a file is named and not followed", () => {
    const root = rootWith({ "a/real.md": "x" });
    symlinkSync(join(root, "a/real.md"), join(root, "a/link.md"));
    expect(problemsOf(root)).toEqual(["a/link.md is a symbolic link"]);
    expect(pathsOf(root)).toEqual(["a/real.md"]);
  });

  test("a link to a directory, to its own parent and to nothing are named and not followed", () => {
    const root = rootWith({ "a/real.md": "x" });
    symlinkSync("/etc", join(root, "a/etc"));
    symlinkSync(".", join(root, "a/loop"));
    symlinkSync("gone", join(root, "a/nowhere"));
    expect(problemsOf(root)).toEqual([
      "a/etc is a symbolic link",
      "a/loop is a symbolic link",
      "a/nowhere is a symbolic link",
    ]);
    expect(pathsOf(root)).toEqual(["a/real.md"]);
  });

  test("a pipe is named and not waited for", () => {
    const root = rootWith({ "a/x.md": "x" });
    execFileSync("mkfifo", [join(root, "a/pipe")]);
    expect(problemsOf(root)).toEqual(["a/pipe is not a regular file"]);
  });

  test("a socket is named", async () => {
    const root = rootWith({ "a/x.md": "x" });
    const server = createServer();
    onTestFinished(() => void server.close());
    await new Promise<void>((done) => server.listen(join(root, "a/socket"), done));
    expect(problemsOf(root)).toEqual(["a/socket is not a regular file"]);
  });

  test("an empty directory is named at every level", () => {
    const root = rootWith({ "a/x.md": "x" });
    for (const path of ["b", "a/c", "a/d/e"]) mkdirSync(join(root, path), { recursive: true });
    expect(problemsOf(root)).toEqual([
      "a/c/ is an empty directory",
      "a/d/e/ is an empty directory",
      "b/ is an empty directory",
    ]);
  });

  test("an empty root holds nothing and is no problem", () => {
    expect(readTree(temporaryDirectory())).toEqual({ files: [], problems: [] });
  });
});

describe("names", () => {
  test.each([
    [".DS_Store", ".DS_Store"],
    ["._SKILL.md", "._SKILL.md"],
    [".git", ".git"],
    ["trailing.", "trailing."],
    ["a b.md", "a b.md"],
    ["a\\b.md", "a\\b.md"],
    ["..\\..\\etc", "..\\..\\etc"],
    ["...", "..."],
    ["-rf", "-rf"],
    ["a:b", "a:b"],
    ["\u00e4.md", "\\u{00e4}.md"],
    ["SKILL\u202edm.exe", "SKILL\\u{202e}dm.exe"],
    ["\u0405KILL.md", "\\u{0405}KILL.md"],
    ["\u{1f600}", "\\u{1f600}"],
    ["a\nb", "a\\u{000a}b"],
    ["\u001b[2J", "\\u{001b}[2J"],
    ["x".repeat(101), "x".repeat(101)],
  ])("%j cannot be pinned and is named in ASCII", (name, written) => {
    const root = rootWith({ [`acme/demo/${name}`]: "x", "acme/demo/SKILL.md": "x" });
    expect(problemsOf(root)).toEqual([expect.stringMatching(/ has a name that cannot be pinned/)]);
    expect(problemsOf(root)[0]).toContain(`acme/demo/${written} `);
    expect(pathsOf(root)).toEqual(["acme/demo/SKILL.md"]);
  });

  test("bytes that are no UTF-8 cannot be pinned", () => {
    const root = rootWith({ "a/x.md": "x" });
    writeFileSync(Buffer.concat([Buffer.from(join(root, "a/")), Buffer.from([0xff, 0x41])]), "x");
    expect(problemsOf(root)).toEqual([expect.stringContaining("a/\\u{fffd}A has a name")]);
  });

  test("a directory whose name cannot be pinned is named and nothing below it is read", () => {
    const root = rootWith({ ".git/config": "x", "a/x.md": "x" });
    expect(problemsOf(root)).toEqual([expect.stringMatching(/^\.git\/ has a name/)]);
    expect(pathsOf(root)).toEqual(["a/x.md"]);
  });

  test("Thumbs.db can be pinned, so only the pins keep it out", () => {
    const root = rootWith({ "a/Thumbs.db": "x" });
    expect(problemsOf(root)).toEqual([]);
    expect(pathsOf(root)).toEqual(["a/Thumbs.db"]);
  });

  test("two names that differ only in case are named, files and directories alike", () => {
    const root = rootWith({ "a/SKILL.md": "x", "a/skill.MD": "y", "a/Data/one": "1", "a/data/two": "2" });
    expect(problemsOf(root)).toEqual([
      "a/data/ differs from Data only in upper and lower case",
      "a/skill.MD differs from SKILL.md only in upper and lower case",
    ]);
  });
});

describe("limits", () => {
  test("a file at the byte limit is read; one byte more is named and not read", () => {
    const root = rootWith({ "at.md": "12345678", "past.md": "123456789" });
    expect(problemsOf(root, SMALL)).toEqual(["past.md is larger than 8 bytes"]);
    expect(pathsOf(root, SMALL)).toEqual(["at.md"]);
  });

  test("all files together have a limit", () => {
    const root = rootWith({ "1": "12345678", "2": "12345678", "3": "1234", "4": "1" });
    expect(problemsOf(root, SMALL)).toEqual(["4 is beyond the limit of 20 bytes for all files"]);
    expect(pathsOf(root, SMALL)).toEqual(["1", "2", "3"]);
  });

  test("too many entries are one problem, whatever they are and however deep the reading was", () => {
    const root = rootWith({ "a/1": "", "a/2": "", "a/3": "", "a/.x": "", "a/.y": "", "b/1": "", c: "" });
    expect(problemsOf(root, { ...SMALL, maxEntries: 3 })).toEqual([
      expect.stringMatching(/^a\/\.x has a name/),
      expect.stringMatching(/^a\/\.y has a name/),
      "a/1 is beyond the limit of 3 files",
    ]);
    expect(pathsOf(root, { ...SMALL, maxEntries: 10 })).toHaveLength(5);
  });

  test("the deepest directory allowed is read; one deeper is named and not read", () => {
    const root = rootWith({ "a/b/x": "", "a/b/c/y": "" });
    expect(problemsOf(root, SMALL)).toEqual(["a/b/c/ is deeper than 2 directories"]);
    expect(pathsOf(root, SMALL)).toEqual(["a/b/x"]);
  });
});

describe("what cannot be read", () => {
  test("a root that is missing or a file throws the system's error", () => {
    const root = rootWith({ file: "x" });
    expect(() => readTree(join(root, "gone"))).toThrow(expect.objectContaining({ code: "ENOENT" }));
    expect(() => readTree(join(root, "file"))).toThrow(expect.objectContaining({ code: "ENOTDIR" }));
  });

  test("a file and a directory without permission are named, and the rest is read", () => {
    const root = rootWith({ "a/secret.md": "x", "a/x.md": "x", "b/y.md": "y" });
    chmodSync(root, 0o755);
    chmodSync(join(root, "a/secret.md"), 0);
    chmodSync(join(root, "b"), 0);
    const tree = asNobody(() => readTree(root));
    chmodSync(join(root, "b"), 0o755);
    expect(tree.problems.map(({ path, reason }) => `${path} ${reason}`)).toEqual([
      "a/secret.md cannot be read (EACCES)",
      "b/ cannot be read (EACCES)",
    ]);
    expect(tree.files.map(({ path }) => path)).toEqual(["a/x.md"]);
  });
});

/** The superuser may read everything, so the act is done as somebody else. */
function asNobody<T>(act: () => T): T {
  if (process.getuid?.() !== 0) return act();
  process.seteuid?.(65_534);
  try {
    return act();
  } finally {
    process.seteuid?.(0);
  }
}

/** Runs the code, which prints a line once it has begun, for as long as the test runs. */
async function meanwhile(code: string): Promise<void> {
  const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await new Promise((done) => child.stdout.once("data", done));
}

test("a file that shrinks and grows while it is read never yields bytes that it did not hold", async () => {
  const root = rootWith({ "a/x.md": "" });
  const code = `
    const { ftruncateSync, openSync, writeSync } = require("node:fs");
    const file = openSync(${JSON.stringify(join(root, "a/x.md"))}, "r+");
    const text = Buffer.alloc(500_000, "A");
    for (let round = 0; ; round += 1) {
      writeSync(file, text, 0, text.length, 0);
      ftruncateSync(file, 0);
      if (round === 0) console.log("ready");
    }`;
  await meanwhile(code);
  const sizes = new Set<number>();
  for (let round = 0; round < 300 || sizes.size < 2; round += 1) {
    const [file] = readTree(root).files;
    const content = file?.content ?? new Uint8Array();
    sizes.add(content.length);
    expect(content.every((byte) => byte === 0x41)).toBe(true);
  }
});

test.each([
  ["link", "cannot be read (ELOOP)"],
  ["pipe", "is no longer a regular file"],
])("a file that is swapped for a %s between listing and reading yields nothing of it", async (kind, swapped) => {
  const root = rootWith({ "a/x.md": "good" });
  const outside = rootWith({ good: "good", secret: "secret" });
  execFileSync("mkfifo", [join(outside, "pipe")]);
  const code = `
    const { linkSync, renameSync, symlinkSync } = require("node:fs");
    process.chdir(${JSON.stringify(outside)});
    const make = {
      link: () => symlinkSync(process.cwd() + "/secret", "next"),
      pipe: () => linkSync("pipe", "next"),
      good: () => linkSync("good", "next"),
    };
    for (let round = 0; ; round += 1) {
      for (const kind of [${JSON.stringify(kind)}, "good"]) {
        make[kind]();
        renameSync("next", ${JSON.stringify(join(root, "a/x.md"))});
      }
      if (round === 0) console.log("ready");
    }`;
  await meanwhile(code);
  const reasons = new Set<string>();
  while (!reasons.has(swapped)) {
    const { files, problems } = readTree(root);
    for (const { reason } of problems) reasons.add(reason);
    for (const { content } of files) expect(Buffer.from(content).toString()).toBe("good");
  }
});
