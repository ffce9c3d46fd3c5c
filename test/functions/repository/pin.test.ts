import { expect, test } from "vitest";
import { digestOfEntries } from "../../../functions/repository/digest.ts";
import { findUnpinnable, pinsOf } from "../../../functions/repository/pin.ts";
import { formatPins, parsePinsText } from "../../../functions/repository/pins.ts";
import { readTree } from "../../../functions/repository/tree.ts";
import { findDifferences } from "../../../functions/repository/verify.ts";
import { DEMO, pinnedRoot, pinsAt, SHIPPED_SKILLS, writeFiles } from "./skills-on-disk.ts";

test("the pins of a tree are what the tree is verified against", () => {
  const tree = readTree(SHIPPED_SKILLS);
  expect(pinsOf(tree)).toEqual(pinsAt(SHIPPED_SKILLS));
  expect(findDifferences(tree, pinsOf(tree))).toEqual([]);
  expect(findUnpinnable(tree)).toEqual([]);
});

test("pins hold per skill the digest, and per file path, digest and size", () => {
  const pins = pinsOf(readTree(pinnedRoot({ "acme/demo/a/b.md": "xyz" })));
  const sha256 = "3608bca1e44ea6c4d268eb6db02260269892c0b42b86bbf1e77a6fa16c3c9282";
  const digest = digestOfEntries([{ path: "a/b.md", content: Buffer.from("xyz") }]);
  expect(pins).toEqual(
    new Map([["acme", new Map([["demo", { digest, files: [{ path: "a/b.md", sha256, size: 3 }] }]])]]),
  );
});

test("what a tree of valid names holds can always be pinned and read back", () => {
  const long = "x".repeat(100);
  const path = ["acme", "demo", ...Array.from({ length: 8 }, () => long)].join("/");
  const pins = pinsOf(readTree(pinnedRoot({ [path]: "x" })));
  expect(parsePinsText(formatPins(pins))).toEqual(pins);
});

test("files outside a skill, odd names and repositories with a wrong name cannot be pinned", () => {
  const root = pinnedRoot(DEMO);
  writeFiles(root, { "stray.md": "", "acme/stray.md": "", "Acme_2/demo/SKILL.md": "", "acme/demo/.DS_Store": "" });
  expect(findUnpinnable(readTree(root)).map(({ path }) => path)).toEqual([
    "acme/demo/.DS_Store",
    "acme/stray.md",
    "stray.md",
    "Acme_2/",
  ]);
});
