import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

/** Stands in for npm: notes that it was called with which words, and installs a Node, or fails when told to. */
const NPM = `
  const fs = require("node:fs");
  fs.appendFileSync("npm-calls", process.argv.slice(2).join(" ") + "\\n");
  if (fs.existsSync("npm-fails")) process.exit(7);
  fs.mkdirSync("node_modules/.bin", { recursive: true });
  fs.rmSync("node_modules/.bin/node", { force: true });
  fs.symlinkSync(process.execPath, "node_modules/.bin/node");
`;

let project = "";

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "skillbroker-install-"));
  mkdirSync(join(project, "scripts"));
  copyFileSync("scripts/with-install.mjs", join(project, "scripts", "with-install.mjs"));
  writeFileSync(join(project, "package-lock.json"), "{}");
  writeFileSync(join(project, "npm.js"), NPM);
  writeFileSync(
    join(project, "program.mjs"),
    "console.log('ran', process.argv[2]); process.exit(Number(process.argv[3] ?? 0));",
  );
});

afterEach(() => rmSync(project, { recursive: true, force: true }));

function start(...words: string[]) {
  const env = { ...process.env, npm_execpath: join(project, "npm.js") };
  return spawnSync(process.execPath, ["scripts/with-install.mjs", "program.mjs", ...words], {
    cwd: project,
    env,
    encoding: "utf8",
  });
}

function npmCalls(): readonly string[] {
  const log = join(project, "npm-calls");
  return existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [];
}

test("installs from the lockfile when nothing is installed, without install scripts, then runs the program", () => {
  const { status, stdout } = start("once");
  expect(status).toBe(0);
  expect(stdout).toBe("ran once\n");
  expect(npmCalls()).toEqual([expect.stringMatching(/^ci .*--ignore-scripts/)]);
});

test("does not install again while the lockfile is the same", () => {
  start();
  start();
  expect(npmCalls()).toHaveLength(1);
});

test("installs again when the lockfile changed", () => {
  start();
  writeFileSync(join(project, "package-lock.json"), '{"changed":true}');
  start();
  expect(npmCalls()).toHaveLength(2);
});

test("installs again when an installation was cut off", () => {
  writeFileSync(join(project, "npm-fails"), "");
  expect(start().status).toBe(1);
  rmSync(join(project, "npm-fails"));
  expect(start().status).toBe(0);
  expect(npmCalls()).toHaveLength(2);
});

test("does not run the program when the installation fails, and says what to do", () => {
  writeFileSync(join(project, "npm-fails"), "");
  const { status, stdout, stderr } = start();
  expect(status).toBe(1);
  expect(stdout).toBe("");
  expect(stderr).toContain("npm ci failed");
});

test("ends with the exit code of the program", () => {
  expect(start("x", "3").status).toBe(3);
});
