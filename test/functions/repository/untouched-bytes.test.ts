import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { PINS_FILE, type Pins } from "../../../functions/repository/pins.ts";
import { readTree, type TreeFile } from "../../../functions/repository/tree.ts";
import { findDifferences } from "../../../functions/repository/verify.ts";
import { type CommandRun, runCommand } from "../../local/commands/run-command.ts";
import {
  copyOfShippedSkills,
  load,
  pinsAt,
  refusals,
  SHIPPED_SKILLS,
  statusesOf,
  temporaryDirectory,
  writeFiles,
} from "./skills-on-disk.ts";

/** Nothing below skills/ can be changed, added, removed or renamed without a refusal that names it. */

const FILES = readTree(SHIPPED_SKILLS).files;
const PATHS = FILES.map(({ path }) => path);
const PINNED_PATHS = PATHS.filter((path) => path !== PINS_FILE);

function flipped(content: Uint8Array, index: number): Uint8Array {
  const copy = Uint8Array.from(content);
  copy[index] = (copy[index] ?? 0) ^ (1 << (index % 8));
  return copy;
}

function verify(root: string): Promise<CommandRun> {
  return runCommand(["verify", root]);
}

/** The first and last bytes, and some between. */
function sampleOf(length: number, count: number): readonly number[] {
  return [...new Set(Array.from({ length: count }, (_, index) => Math.round((index * (length - 1)) / (count - 1))))];
}

test("the shipped skills load as they are", async () => {
  expect(statusesOf(SHIPPED_SKILLS)).toEqual(["builtin loaded"]);
  expect(await verify(SHIPPED_SKILLS)).toMatchObject({ exitCode: 0 });
});

describe("one changed byte", () => {
  const pins = pinsAt(SHIPPED_SKILLS);

  /** The rest of the tree is left out, so that 20,000 comparisons stay fast. */
  function skillAround(path: string): { readonly files: readonly TreeFile[]; readonly pins: Pins } {
    const [repository = "", skill = ""] = path.split("/");
    const pin = pins.get(repository)?.get(skill);
    if (pin === undefined) throw new Error(`${path} is not pinned`);
    const files = FILES.filter((file) => file.path.startsWith(`${repository}/${skill}/`));
    return { files, pins: new Map([[repository, new Map([[skill, pin]])]]) };
  }

  test.each(PINNED_PATHS)("is found at every place of %s", (path) => {
    const skill = skillAround(path);
    const content = skill.files.find((file) => file.path === path)?.content ?? new Uint8Array();
    expect(content.length).toBeGreaterThan(100);
    for (let index = 0; index < content.length; index += 1) {
      const files = skill.files.map((file) => (file.path === path ? { path, content: flipped(content, index) } : file));
      const found = findDifferences({ files, problems: [] }, skill.pins);
      expect(found.map((difference) => difference.path)).toEqual([path]);
    }
  });

  describe("on disk", () => {
    test.each(PATHS)("refuses %s changed at a sample of its places, by name", (path) => {
      const root = copyOfShippedSkills();
      const content = readFileSync(join(root, path));
      for (const index of sampleOf(content.length, 12)) {
        writeFileSync(join(root, path), flipped(content, index));
        expect(refusals(root).join("\n"), `byte ${index}`).toContain(path);
        expect(load(root).every(({ status }) => status === "refused")).toBe(true);
      }
      writeFileSync(join(root, path), content);
      expect(statusesOf(root)).toEqual(["builtin loaded"]);
    });

    test.each(PATHS)("the command verify fails on %s with one byte changed, cut or added", async (path) => {
      const root = copyOfShippedSkills();
      const content = readFileSync(join(root, path));
      const spoiled = [
        flipped(content, Math.floor(content.length / 2)),
        content.subarray(1),
        Buffer.concat([content, Buffer.from(" ")]),
      ];
      for (const bytes of spoiled) {
        writeFileSync(join(root, path), bytes);
        const { exitCode, output } = await verify(root);
        expect(output).toContain(path);
        expect(exitCode).toBe(1);
      }
    });
  });
});

type Change = readonly [claim: string, named: string, change: (root: string) => void];

const add = (path: string): Change => [`adding ${path}`, path, (root) => writeFiles(root, { [path]: "x" })];

const addDirectory = (path: string): Change => [
  `adding the empty directory ${path}`,
  `${path}/`,
  (root) => mkdirSync(join(root, path), { recursive: true }),
];

const remove = (path: string): Change => [
  `removing ${path}`,
  path,
  (root) => rmSync(join(root, path), { recursive: true }),
];

const rename = (from: string, to: string): Change => [
  `renaming ${from} to ${to}`,
  from,
  (root) => renameSync(join(root, from), join(root, to)),
];

const LEVELS = ["", "builtin/", "builtin/data-table/", "builtin/status-update/templates/"];
const DIRECTORIES = ["builtin", "builtin/data-table", "builtin/weekly-review", "builtin/status-update/templates"];
const DROPPINGS = [".DS_Store", "._SKILL.md", "Thumbs.db", ".gitignore", "extra.md", "SKILL.md~", "pins.json.bak"];

const CHANGES: readonly Change[] = [
  ...LEVELS.flatMap((level) => DROPPINGS.map((name) => add(level + name))),
  ...LEVELS.filter((level) => level !== "").map((level) => add(`${level}pins.json`)),
  ...LEVELS.map((level) => add(`${level}new/SKILL.md`)),
  ...LEVELS.map((level) => addDirectory(`${level}empty`)),
  ...PATHS.map(remove),
  ...DIRECTORIES.map(remove),
  ...PATHS.map((path) => rename(path, `${path}x`)),
  ...PATHS.map((path) =>
    rename(
      path,
      path.replace(/[^/]+$/, (name) => name.toUpperCase().replace(".MD", ".Md")),
    ),
  ),
  ...DIRECTORIES.map((path) => rename(path, `${path}-2`)),
  ...DIRECTORIES.map((path) =>
    rename(
      path,
      path.replace(/[^/]+$/, (name) => name.toUpperCase()),
    ),
  ),
  rename("builtin/data-table", "data-table"),
  rename("builtin/data-table/tool.json", "builtin/weekly-review/tool.json"),
  [
    "swapping two templates",
    "builtin/status-update/templates/document.md",
    (root) =>
      swap(root, "builtin/status-update/templates/document.md", "builtin/incident-report/templates/document.md"),
  ],
  [
    "swapping two skills",
    "builtin/data-table/SKILL.md",
    (root) => swap(root, "builtin/data-table", "builtin/calendar-event"),
  ],
  [
    "emptying a file",
    "builtin/data-table/tool.json",
    (root) => truncateSync(join(root, "builtin/data-table/tool.json")),
  ],
  [
    "putting a link to the same bytes in place of a file",
    "builtin/data-table/SKILL.md",
    (root) => linkInstead(root, "builtin/data-table/SKILL.md"),
  ],
  [
    "putting a link to the same directory in place of a skill",
    "builtin/data-table",
    (root) => linkInstead(root, "builtin/data-table"),
  ],
  [
    "putting a directory in place of a file",
    "builtin/data-table/SKILL.md",
    (root) => {
      rmSync(join(root, "builtin/data-table/SKILL.md"));
      writeFiles(root, { "builtin/data-table/SKILL.md/SKILL.md": "x" });
    },
  ],
  [
    "copying a repository under another name",
    "acme/data-table/SKILL.md",
    (root) => cpSync(join(root, "builtin"), join(root, "acme"), { recursive: true }),
  ],
];

function swap(root: string, one: string, other: string): void {
  renameSync(join(root, one), join(root, "swapped"));
  renameSync(join(root, other), join(root, one));
  renameSync(join(root, "swapped"), join(root, other));
}

function linkInstead(root: string, path: string): void {
  const elsewhere = join(temporaryDirectory(), "moved");
  renameSync(join(root, path), elsewhere);
  symlinkSync(elsewhere, join(root, path));
}

describe("the shape of the tree", () => {
  test.each(CHANGES)("%s is refused, and the reason names it", async (_, named, change) => {
    const root = copyOfShippedSkills();
    change(root);
    const reasons = refusals(root);
    expect(reasons.join("\n")).toContain(named);
    expect(reasons.join("\n")).not.toContain(root);
    const { exitCode, output } = await verify(root);
    expect(output).toContain(named);
    expect(exitCode).toBe(1);
  });

  test("every file of the shipped tree is among what was changed, removed and renamed", () => {
    const listed = readdirSync(SHIPPED_SKILLS, { recursive: true, withFileTypes: true }).filter((each) =>
      each.isFile(),
    );
    expect(PATHS).toHaveLength(listed.length);
    expect(PATHS).toContain(PINS_FILE);
  });
});

describe("line endings", () => {
  test("a checkout with CRLF is refused file by file, each for its line endings", () => {
    const root = copyOfShippedSkills();
    for (const path of PINNED_PATHS) toWindows(join(root, path));
    const reasons = refusals(root);
    for (const path of PINNED_PATHS) {
      expect(reasons).toContainEqual(expect.stringMatching(`^${path} .*line endings.*\\.gitattributes`));
    }
    expect(reasons).toHaveLength(PINNED_PATHS.length);
  });

  test("pins.json with CRLF is refused for its line endings", async () => {
    const root = copyOfShippedSkills();
    toWindows(join(root, PINS_FILE));
    expect(refusals(root)).toEqual([expect.stringMatching(/^pins\.json.*line endings.*\.gitattributes/)]);
    expect((await verify(root)).exitCode).toBe(1);
  });

  test("an edit in a file with CRLF is not put down to line endings", () => {
    const root = copyOfShippedSkills();
    const path = join(root, "builtin/data-table/SKILL.md");
    writeFileSync(path, readFileSync(path, "utf8").replaceAll("\n", "\r\n").replace("rows", "r0ws"));
    expect(refusals(root)).toEqual([expect.stringMatching(/^builtin\/data-table\/SKILL\.md was changed/)]);
  });
});

function toWindows(path: string): void {
  writeFileSync(path, readFileSync(path, "latin1").replaceAll("\n", "\r\n"), "latin1");
}
