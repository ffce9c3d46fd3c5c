import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

/** The page names tests as evidence: they must be there, by file and by the words of their titles. */

const page = readFileSync("docs/security.md", "utf8");
/** Each item of a list, with the lines that go on from it. */
const evidence = [...page.matchAll(/^- (.*(?:\n {2}.*)*)/gm)].map(([, item = ""]) => item.replace(/\s+/g, " "));
const threats = page.split(/^### /m).slice(1);

/** Paths in an item; a name without a directory stands for a file beside the one before it. */
function pathsIn(item: string): readonly string[] {
  let directory = "";
  return [...item.matchAll(/`((?:[\w-]+\/)*[\w.-]+)`/g)].flatMap(([, name = ""]) => {
    const path = name.startsWith("test/") || name === "test" ? name : join(directory, name);
    if (!path.startsWith("test")) return [];
    if (name.includes("/")) directory = path.replace(/\/[\w.-]+\.ts$/, "");
    return [path];
  });
}

function sourceOf(path: string): string {
  if (path.endsWith(".ts")) return readFileSync(path, "utf8");
  const names = readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return names.map((name) => readFileSync(join(path, name), "utf8")).join("\n");
}

test("every threat has something that stops it, and a test that shows it or a word on what is missing", () => {
  expect(threats.length).toBeGreaterThan(12);
  for (const threat of threats) expect(threat).toMatch(/`test\//);
});

describe.each(evidence.filter((item) => item.includes("`test")))("%s", (item) => {
  const paths = pathsIn(item);

  test("is there", () => {
    expect(paths.length).toBeGreaterThan(0);
    for (const path of paths) expect([path, existsSync(path)]).toEqual([path, true]);
  });

  test("has tests of the quoted words", () => {
    const sources = paths.map(sourceOf).join("\n").replace(/\s+/g, " ");
    for (const [, quoted = ""] of item.matchAll(/"([^"]+)"/g)) {
      for (const words of quoted.split(" … ")) expect(sources).toContain(words);
    }
  });
});
