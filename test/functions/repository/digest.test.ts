import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type DigestEntry, digestOfEntries, inPathOrder } from "../../../functions/repository/digest.ts";
import { pinsOf } from "../../../functions/repository/pin.ts";
import { readTree } from "../../../functions/repository/tree.ts";
import { temporaryDirectory, writeFiles } from "./skills-on-disk.ts";

const PATHS = ["Zeta.md", "alpha.md", "a-b.md", "a/b.md", "a.md", "\u00e4.md", "10.md", "9.md"];
const ORDERED = ["10.md", "9.md", "Zeta.md", "a-b.md", "a.md", "a/b.md", "alpha.md", "\u00e4.md"];

function entry(path: string, content: string): DigestEntry {
  return { path, content: Buffer.from(content) };
}

describe("framing", () => {
  test("the digest is SHA-256 over 8-byte big-endian lengths, paths and contents", () => {
    const framed = "000000000000000161" + "00000000000000027879" + "0000000000000002c3a4" + "0000000000000000";
    const expected = createHash("sha256").update(Buffer.from(framed, "hex")).digest("hex");
    expect(digestOfEntries([entry("\u00e4", ""), entry("a", "xy")])).toBe(expected);
  });

  test.each([
    ["the end of a path moves into the content", [entry("ab", "c")], [entry("a", "bc")]],
    ["two files become one", [entry("a", "x"), entry("b", "y")], [entry("a", "xby")]],
    [
      "a content poses as the next file",
      [entry("a", "x"), entry("b", "y")],
      [entry("a", `x${frame("b")}${frame("y")}`)],
    ],
    ["a file changes places with its content", [entry("a", "b")], [entry("b", "a")]],
    ["two files swap contents", [entry("a", "1"), entry("b", "2")], [entry("a", "2"), entry("b", "1")]],
    ["an empty file appears", [entry("a", "x")], [entry("a", "x"), entry("b", "")]],
    ["a NUL is added", [entry("a", "x")], [entry("a", "x\0")]],
  ])("differs when %s", (_, before, after) => {
    expect(digestOfEntries(before)).not.toBe(digestOfEntries(after));
  });
});

function frame(field: string): string {
  return `${"\0".repeat(7)}${String.fromCharCode(field.length)}${field}`;
}

describe("order", () => {
  test("is by the UTF-8 bytes of the path", () => {
    expect(inPathOrder(PATHS.map((path) => ({ path }))).map(({ path }) => path)).toEqual(ORDERED);
  });

  test("puts a character beyond the first plane after all others, as its bytes do and its UTF-16 units do not", () => {
    const paths = ["\u{1f600}.md", "\uff5e.md", "\ud7ff.md"];
    expect(paths.toSorted()[1]).toBe("\u{1f600}.md");
    expect(inPathOrder(paths.map((path) => ({ path }))).map(({ path }) => path)).toEqual([
      "\ud7ff.md",
      "\uff5e.md",
      "\u{1f600}.md",
    ]);
  });

  test("leaves the given list as it was", () => {
    const given = [{ path: "b" }, { path: "a" }];
    inPathOrder(given);
    expect(given).toEqual([{ path: "b" }, { path: "a" }]);
  });

  test("is the same in every locale of the machine", async () => {
    const module = pathToFileURL(join(import.meta.dirname, "../../../functions/repository/digest.ts")).href;
    const code = `
      const { digestOfEntries, inPathOrder } = await import(${JSON.stringify(module)});
      const entries = ${JSON.stringify(PATHS)}.map((path) => ({ path, content: Buffer.from(path) }));
      const order = inPathOrder(entries).map(({ path }) => path);
      const { locale } = Intl.DateTimeFormat().resolvedOptions();
      console.log(JSON.stringify({ digest: digestOfEntries(entries), order, locale }));`;
    const answers = await Promise.all(
      ["C", "sv_SE.UTF-8", "tr_TR.UTF-8"].map(async (LC_ALL) => {
        const ran = promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], { env: { LC_ALL } });
        return JSON.parse((await ran).stdout);
      }),
    );
    expect(new Set(answers.map(({ locale }) => locale)).size).toBe(3);
    const digest = digestOfEntries(PATHS.map((path) => entry(path, path)));
    for (const answer of answers) expect(answer).toMatchObject({ digest, order: ORDERED });
  });
});

/** Few paths and bytes, so that trees are often nearly the same. */
const tree = fc.uniqueArray(
  fc.record({
    path: fc.constantFrom("a", "b", "ab", "a/b", "a-b", "\u00e4", "\uff5e", "\u{1f600}"),
    content: fc.array(fc.constantFrom(0, 1, 97, 98), { maxLength: 3 }).map((bytes) => Uint8Array.from(bytes)),
  }),
  { selector: ({ path }) => path, maxLength: 5 },
);

const treePair = fc.oneof(
  fc.tuple(tree, tree),
  tree.chain((entries) => fc.tuple(fc.constant(entries), fc.shuffledSubarray(entries, { minLength: entries.length }))),
  tree.chain((entries) => fc.tuple(fc.constant(entries), fc.shuffledSubarray(entries))),
);

function contentsByPath(entries: readonly DigestEntry[]): ReadonlyMap<string, string> {
  return new Map(entries.map(({ path, content }) => [path, Buffer.from(content).toString("hex")]));
}

function sameTree(a: readonly DigestEntry[], b: readonly DigestEntry[]): boolean {
  const [first, second] = [contentsByPath(a), contentsByPath(b)];
  return first.size === second.size && [...first].every(([path, content]) => second.get(path) === content);
}

test("two digests are equal if and only if the trees are equal, whatever order they were read in", () => {
  let equal = 0;
  fc.assert(
    fc.property(treePair, ([a, b]) => {
      equal += sameTree(a, b) ? 1 : 0;
      expect(digestOfEntries(a) === digestOfEntries(b)).toBe(sameTree(a, b));
    }),
    { numRuns: 5_000 },
  );
  expect(equal).toBeGreaterThan(500);
});

test("modes and times are no part of a digest", () => {
  const [first, second] = [temporaryDirectory(), temporaryDirectory()];
  for (const root of [first, second]) writeFiles(root, { "acme/demo/scripts/run.sh": "echo" });
  chmodSync(join(first, "acme/demo/scripts/run.sh"), 0o644);
  chmodSync(join(second, "acme/demo/scripts/run.sh"), 0o755);
  utimesSync(join(second, "acme/demo/scripts/run.sh"), 1, 1);
  expect(pinsOf(readTree(second))).toEqual(pinsOf(readTree(first)));
});
