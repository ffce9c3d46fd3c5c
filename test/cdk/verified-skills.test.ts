import { appendFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { findSkills, pickPinned, verifySkills } from "../../cdk/verified-skills.ts";
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
  const { files, pins } = verifySkills({ roots: [root] });
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
  expect(() => verifySkills({ roots: [root] })).toFail("REPOSITORY_REFUSED");
  const message = messageOf(() => verifySkills({ roots: [root] }));
  const paths = ["status-update/templates/document.md", "data-table/tool.json", "meeting-minutes/notes.md"];
  for (const path of paths) expect(message).toContain(`\n  ${root}: builtin/${path} `);
});

test("says once what lies beside the repositories", () => {
  addRepository("acme");
  writeFileSync(join(root, "README.md"), "beside");
  expect(messageOf(() => verifySkills({ roots: [root] })).match(/README\.md/g)).toHaveLength(1);
});

test("refuses a skill that is pinned and still not one", () => {
  writeFileSync(join(root, "builtin/data-table/SKILL.md"), "no frontmatter\n");
  writeFileSync(join(root, "pins.json"), formatPins(pinsOf(readTree(root))));
  expect(() => verifySkills({ roots: [root] })).toFail("REPOSITORY_REFUSED");
  expect(messageOf(() => verifySkills({ roots: [root] }))).toContain("builtin/data-table/SKILL.md");
});

test("refuses a repository that is wanted and not there", () => {
  expect(() => verifySkills({ roots: [root], repositories: ["builtin", "acme"] })).toFail("REPOSITORY_REFUSED");
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
  expect(() => verifySkills({ roots: [root] })).toFail("REPOSITORY_REFUSED");
  expect(messageOf(() => verifySkills({ roots: [root] }))).toContain("pins.json");
});

test("keeps a repository out that is not wanted, from the files and from the pins", () => {
  addRepository("acme");
  const all = verifySkills({ roots: [root] });
  const some = verifySkills({ roots: [root], repositories: ["acme"] });
  expect([...all.pins.keys()].sort()).toEqual(["acme", "builtin"]);
  expect([...some.pins.keys()]).toEqual(["acme"]);
  expect(some.files.map(({ path }) => path)).toEqual(["acme/weekly-review/SKILL.md"]);
});

describe("several directories", () => {
  const other = () => join(temp, `other-${copies}`);

  /** Beside `root`, a directory with one repository of this name. */
  function addDirectory(name: string): void {
    addRepository(name);
    mkdirSync(other());
    renameSync(join(root, name), join(other(), name));
    for (const each of [root, other()]) writeFileSync(join(each, "pins.json"), formatPins(pinsOf(readTree(each))));
  }

  test("make one set of skills", () => {
    addDirectory("acme");
    const found = findSkills({ roots: [root, other()] });
    expect(found.problems).toEqual([]);
    expect(found.names).toEqual(["builtin", "acme"]);
    expect([...found.pins.keys()]).toEqual(["builtin", "acme"]);
    expect(found.files.map(({ path }) => path)).toEqual(
      expect.arrayContaining(["builtin/status-update/SKILL.md", "acme/weekly-review/SKILL.md"]),
    );
  });

  test("are each looked through for the wanted repositories", () => {
    addDirectory("acme");
    expect(findSkills({ roots: [root, other()], repositories: ["acme"] })).toMatchObject({
      names: ["acme"],
      problems: [],
    });
    expect(findSkills({ roots: [root, other()], repositories: ["acme", "ghost"] }).problems).toEqual([
      `ghost/ is wanted and not in ${root} or ${other()}`,
    ]);
  });

  test("may not have a repository of one name in two of them", () => {
    addDirectory("acme");
    expect(findSkills({ roots: [root, other(), other()] }).problems).toEqual([
      `${other()}: acme/ is also in ${other()}; a name stands for one repository`,
    ]);
  });

  test("are all told of when something is wrong in each", () => {
    addDirectory("acme");
    appendFileSync(join(root, "builtin/data-table/tool.json"), " ");
    appendFileSync(join(other(), "acme/weekly-review/SKILL.md"), " ");
    expect(findSkills({ roots: [root, join(temp, "none"), other()] }).problems).toEqual([
      expect.stringContaining(`${root}: builtin/data-table/tool.json `),
      expect.stringContaining(`${join(temp, "none")}: the skills directory cannot be read (ENOENT)`),
      expect.stringContaining(`${join(temp, "none")}: pins.json cannot be read`),
      expect.stringContaining(`${other()}: acme/weekly-review/SKILL.md `),
    ]);
  });
});

describe("what can be called", () => {
  const BUILTIN = ["calendar_event@1", "data_table@1", "incident_report@1", "meeting_minutes@1", "status_update@1"];

  test("is named, what is written in the source too", () => {
    expect(findSkills({ roots: [root] }).refs).toEqual(["create_pdf@1", "make_plan@1", ...BUILTIN].toSorted());
  });

  test("is named of a refused repository too, as it says of itself", () => {
    appendFileSync(join(root, "builtin/status-update/SKILL.md"), " ");
    expect(findSkills({ roots: [root] }).refs).toEqual(expect.arrayContaining(BUILTIN));
  });

  test("is named of no repository that is not wanted", () => {
    addRepository("acme");
    expect(findSkills({ roots: [root], repositories: ["acme"] }).refs).toEqual(["create_pdf@1", "make_plan@1"]);
  });

  test.each([
    ["status_update@1", "status_update", "builtin/status-update"],
    ["create_pdf@1", "create_pdf", "a tool of skillbroker's own"],
  ])("has one owner: %s of another repository is refused", (ref, id, owner) => {
    cpSync(join(root, "builtin/status-update"), join(root, "acme/status-update"), { recursive: true });
    const tool = readFileSync(join(root, "acme/status-update/tool.json"), "utf8");
    writeFileSync(join(root, "acme/status-update/tool.json"), tool.replace('"status_update"', JSON.stringify(id)));
    writeFileSync(join(root, "pins.json"), formatPins(pinsOf(readTree(root))));
    const { problems } = findSkills({ roots: [root] });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`${ref} is already the ref of ${owner === "builtin/status-update" ? "" : owner}`);
  });
});

test("what was changed between the check and the copy is not deployed", () => {
  const { files, pins } = verifySkills({ roots: [root] });
  const tree = readTree(root);
  expect(pickPinned(tree, pins)).toEqual(files);
  const [path] = files.map((file) => file.path);
  const others = tree.files.filter((file) => file.path !== path);
  const changed = tree.files
    .filter((file) => file.path === path)
    .map((file) => ({ ...file, content: Buffer.concat([file.content, Buffer.from("!")]) }));
  expect(changed).toHaveLength(1);
  expect(() => pickPinned({ ...tree, files: [...others, ...changed] }, pins)).toFail("REPOSITORY_REFUSED");
  expect(() => pickPinned({ ...tree, files: others }, pins)).toFail("REPOSITORY_REFUSED");
});
