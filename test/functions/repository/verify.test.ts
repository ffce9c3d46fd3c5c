import { renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { PINS_FILE } from "../../../functions/repository/pins.ts";
import { readTree } from "../../../functions/repository/tree.ts";
import { findDifferences, formatDifference } from "../../../functions/repository/verify.ts";
import { DEMO, pinnedRoot, pinsAt, writeFiles } from "./skills-on-disk.ts";

const MD = "acme/demo/SKILL.md";

function differencesAt(root: string): readonly string[] {
  return findDifferences(readTree(root), pinsAt(root)).map(formatDifference);
}

test("a tree that is as it was pinned differs in nothing", () => {
  expect(differencesAt(pinnedRoot(DEMO))).toEqual([]);
});

test("every difference is found at once, in the order of paths", () => {
  const root = pinnedRoot(DEMO);
  writeFiles(root, { [MD]: "changed", "acme/demo/extra.md": "x", "acme/.DS_Store": "x", "top.md": "x" });
  renameSync(join(root, "acme/demo/tool.json"), join(root, "acme/demo/Tool.json"));
  const found = findDifferences(readTree(root), pinsAt(root));
  expect(found.map(({ repository, path }) => [repository, path])).toEqual([
    ["acme", "acme/.DS_Store"],
    ["acme", MD],
    ["acme", "acme/demo/Tool.json"],
    ["acme", "acme/demo/extra.md"],
    ["acme", "acme/demo/tool.json"],
    [undefined, "top.md"],
  ]);
});

test("a changed file is told with both digests and both sizes", () => {
  const root = pinnedRoot({ [MD]: "xyz" });
  writeFileSync(join(root, MD), "xyz!");
  expect(differencesAt(root)).toEqual([
    expect.stringMatching(/^acme\/demo\/SKILL\.md was changed: 3608bca1e44e… \(3 bytes\).*, [0-9a-f]{12}… \(4 bytes\)/),
  ]);
});

test.each([
  ["LF", "a\nb\n", "a\r\nb\r\n"],
  ["CRLF", "a\r\nb\r\n", "a\nb\n"],
])("a file that was pinned with %s and differs in line endings only is told so", (_, pinned, found) => {
  const root = pinnedRoot({ [MD]: pinned });
  writeFileSync(join(root, MD), found);
  expect(differencesAt(root)).toEqual([expect.stringMatching(/line endings.*\.gitattributes/)]);
  writeFileSync(join(root, MD), found.replace("b", "c"));
  expect(differencesAt(root)).toEqual([expect.stringMatching(/was changed/)]);
});

test("a file in another case is told with the name that is pinned", () => {
  const root = pinnedRoot(DEMO);
  renameSync(join(root, MD), join(root, "acme/demo/SKILL.MD"));
  expect(differencesAt(root)).toEqual([
    `acme/demo/SKILL.MD is not pinned in ${PINS_FILE}; ${MD} is, and upper and lower case differ`,
    `${MD} is pinned in ${PINS_FILE} but missing`,
  ]);
});

test("a file that is there and cannot be used is not called missing", () => {
  const root = pinnedRoot(DEMO);
  renameSync(join(root, MD), join(root, "moved"));
  symlinkSync(join(root, "moved"), join(root, MD));
  expect(differencesAt(root)).toEqual([`${MD} is a symbolic link`, `moved is not pinned in ${PINS_FILE}`]);
});

describe("pins that were edited", () => {
  function editedPins(edit: (text: string) => string): readonly string[] {
    const root = pinnedRoot({ [MD]: "xyz", "acme/demo/b.md": "b" });
    writeFileSync(
      join(root, PINS_FILE),
      edit(JSON.stringify(JSON.parse(readPinsText(root)), undefined, 2).concat("\n")),
    );
    return differencesAt(root);
  }

  function readPinsText(root: string): string {
    return Buffer.from(readTree(root).files.find(({ path }) => path === PINS_FILE)?.content ?? "").toString();
  }

  test("the digest of a skill must be that of its files, not only each file's own", () => {
    expect(editedPins((text) => text.replace(/"digest": "[0-9a-f]{64}"/, `"digest": "${"0".repeat(64)}"`))).toEqual([
      expect.stringMatching(
        new RegExp(`^acme/demo has the digest [0-9a-f]{64}, but pins\\.json says ${"0".repeat(64)}$`),
      ),
    ]);
  });

  test("the size of a file must be its size", () => {
    expect(editedPins((text) => text.replace('"size": 3', '"size": 4'))).toEqual([
      expect.stringMatching(/^acme\/demo\/SKILL\.md was changed: .*\(4 bytes\).*\(3 bytes\)/),
    ]);
  });

  test("a file that is left out is not pinned, and the digest no longer fits", () => {
    const withoutB = (text: string) => text.replace(/,\s*\{\s*"path": "b\.md"[^}]*\}/, "");
    const found = editedPins(withoutB);
    expect(found.map((line) => line.split(" ")[0])).toEqual(["acme/demo", "acme/demo/b.md"]);
  });
});
