import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { verifySkills } from "../../cdk/verified-skills.ts";
import { pinsOf } from "../../functions/repository/pin.ts";
import { formatPins } from "../../functions/repository/pins.ts";
import { readTree } from "../../functions/repository/tree.ts";
import { ROOT } from "./kit/run-app.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";
import "../kit/to-fail.ts";

const temp = makeTempDirectory();
let root = "";
let copies = 0;

beforeEach(() => {
  copies += 1;
  root = join(temp, `skills-${copies}`);
  cpSync(join(ROOT, "skills"), root, { recursive: true });
});

const messageOf = (act: () => unknown) => {
  try {
    act();
  } catch (error) {
    if (error instanceof Error) return error.message;
  }
  return "";
};

function addRepository(name: string): void {
  cpSync(join(root, "builtin/weekly-review"), join(root, name, "weekly-review"), { recursive: true });
  const text = readFileSync(join(root, name, "weekly-review/SKILL.md"), "utf8").replace(/^metadata:\n.*\n/m, "");
  writeFileSync(join(root, name, "weekly-review/SKILL.md"), text);
  writeFileSync(join(root, "pins.json"), formatPins(pinsOf(readTree(root))));
}

test("gives every pinned file, byte for byte, and no other", () => {
  const { files, pins } = verifySkills({ root });
  const onDisk = readTree(root).files.filter(({ path }) => path !== "pins.json");
  expect(new Map(files.map(({ path, content }) => [path, Buffer.from(content)]))).toEqual(
    new Map(onDisk.map(({ path, content }) => [path, Buffer.from(content)])),
  );
  expect(formatPins(pins)).toBe(readFileSync(join(root, "pins.json"), "utf8"));
});

test("names every file that is not as pinned, together", () => {
  appendFileSync(join(root, "builtin/status-update/templates/document.md"), " ");
  rmSync(join(root, "builtin/data-table/tool.json"));
  writeFileSync(join(root, "builtin/meeting-minutes/notes.md"), "not pinned");
  expect(() => verifySkills({ root })).toFail("REPOSITORY_REFUSED");
  const message = messageOf(() => verifySkills({ root }));
  const paths = ["status-update/templates/document.md", "data-table/tool.json", "meeting-minutes/notes.md"];
  for (const path of paths) expect(message).toContain(`\n  builtin/${path} `);
});

test("says once what lies beside the repositories", () => {
  addRepository("acme");
  writeFileSync(join(root, "README.md"), "beside");
  expect(messageOf(() => verifySkills({ root })).match(/README\.md/g)).toHaveLength(1);
});

test("refuses a skill that is pinned and still not one", () => {
  writeFileSync(join(root, "builtin/data-table/SKILL.md"), "no frontmatter\n");
  writeFileSync(join(root, "pins.json"), formatPins(pinsOf(readTree(root))));
  expect(() => verifySkills({ root })).toFail("REPOSITORY_REFUSED");
  expect(messageOf(() => verifySkills({ root }))).toContain("builtin/data-table/SKILL.md");
});

test("refuses a repository that is wanted and not there", () => {
  expect(() => verifySkills({ root, repositories: ["builtin", "acme"] })).toFail("REPOSITORY_REFUSED");
});

test.each([
  ["missing", () => rmSync(join(root, "pins.json"))],
  ["not JSON", () => writeFileSync(join(root, "pins.json"), "{")],
  ["edited by hand", () => appendFileSync(join(root, "pins.json"), "\n")],
  [
    "a directory",
    () => {
      rmSync(join(root, "pins.json"));
      mkdirSync(join(root, "pins.json"));
    },
  ],
])("refuses pins that are %s", (_, spoil) => {
  spoil();
  expect(() => verifySkills({ root })).toFail("REPOSITORY_REFUSED");
  expect(messageOf(() => verifySkills({ root }))).toContain("pins.json");
});

test("keeps a repository out that is not wanted, from the files and from the pins", () => {
  addRepository("acme");
  const all = verifySkills({ root });
  const some = verifySkills({ root, repositories: ["acme"] });
  expect([...all.pins.keys()].sort()).toEqual(["acme", "builtin"]);
  expect([...some.pins.keys()]).toEqual(["acme"]);
  expect(some.files.map(({ path }) => path)).toEqual(["acme/weekly-review/SKILL.md"]);
});
