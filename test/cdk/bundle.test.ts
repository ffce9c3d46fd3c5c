import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Metafile } from "esbuild";
import { beforeAll, describe, expect, test } from "vitest";
import { type Bundle, bundleHttpFunction, findBundleProblems } from "../../cdk/bundle.ts";
import { verifySkills } from "../../cdk/verified-skills.ts";
import { ROOT } from "./kit/run-app.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

const temp = makeTempDirectory();
const skills = verifySkills({ root: join(ROOT, "skills") });
let bundle: Bundle;

beforeAll(async () => {
  bundle = await bundleHttpFunction({ root: ROOT, skills, directory: join(temp, "bundle") });
});

/** Path -> text of every file below a directory. */
function readFiles(directory: string): ReadonlyMap<string, string> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name));
  return new Map(paths.map((path) => [path.slice(directory.length + 1), readFileSync(path, "utf8")]));
}

/** Packages in the files that an import of `index.mjs` reads, before anything is called. */
function packagesReadAtStart({ outputs }: Metafile): ReadonlySet<string> {
  const entry = Object.keys(outputs).find((path) => path.endsWith("/index.mjs")) ?? "";
  const reached = new Set([entry]);
  for (const path of reached) {
    for (const { kind, path: next, external } of outputs[path]?.imports ?? []) {
      if (kind === "import-statement" && external !== true) reached.add(next);
    }
  }
  const inputs = [...reached].flatMap((path) => Object.keys(outputs[path]?.inputs ?? {}));
  return new Set(inputs.flatMap((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? []));
}

describe("the bundle", () => {
  test("holds the pinned skill files and code, and nothing else", () => {
    const files = readFiles(bundle.directory);
    const packaged = [...files].filter(([path]) => path.startsWith("skills/"));
    expect(new Map(packaged)).toEqual(
      new Map(skills.files.map(({ path, content }) => [`skills/${path}`, Buffer.from(content).toString()])),
    );
    const others = [...files.keys()].filter((path) => !path.startsWith("skills/"));
    expect(others.filter((path) => !/^[A-Za-z0-9-]+\.mjs$/.test(path))).toEqual([]);
    expect(others).toContain("index.mjs");
  });

  test("does not read the schema compiler or the pattern engine at the start, but has them", () => {
    const atStart = packagesReadAtStart(bundle.metafile);
    expect(atStart).toContain("zod");
    expect(["ajv", "re2js", "fast-uri"].filter((name) => atStart.has(name))).toEqual([]);
    const inputs = Object.keys(bundle.metafile.inputs);
    for (const name of ["ajv", "re2js"]) expect(inputs.some((input) => input.includes(`/${name}/`))).toBe(true);
  });

  test("carries no source map", () => {
    const code = [...readFiles(bundle.directory)].filter(([path]) => path.endsWith(".mjs"));
    for (const [, text] of code) expect(text).not.toMatch(/^\/\/# sourceMappingURL=/m);
  });

  test("compiles in the pins of the skills that it was given, not those of the checkout", async () => {
    const pin = { digest: "0".repeat(64), files: [{ path: "SKILL.md", sha256: "5".repeat(64), size: 7 }] };
    const pins = new Map([["acme", new Map([["triage", pin]])]]);
    const other = await bundleHttpFunction({ root: ROOT, skills: { pins, files: [] }, directory: join(temp, "other") });
    const code = [...readFiles(other.directory).values()].join("\n");
    expect(code.includes("5".repeat(64))).toBe(true);
    const [shipped] = [...(skills.pins.get("builtin")?.values() ?? [])];
    expect(code.includes(String(shipped?.digest))).toBe(false);
  });

  test("leaves nothing of an older bundle and is readable for everybody under a private umask", async () => {
    const directory = join(temp, "again");
    await bundleHttpFunction({ root: ROOT, skills, directory });
    const before = process.umask(0o077);
    try {
      await bundleHttpFunction({ root: ROOT, skills: { ...skills, files: skills.files.slice(1) }, directory });
    } finally {
      process.umask(before);
    }
    const paths = [...readFiles(directory).keys()];
    expect(paths).not.toContain(`skills/${skills.files[0]?.path}`);
    for (const path of paths) expect(statSync(join(directory, path)).mode & 0o777).toBe(0o644);
  });

  test("is the same bytes each time", async () => {
    const { directory } = await bundleHttpFunction({ root: ROOT, skills, directory: join(temp, "twin") });
    expect(readFiles(directory)).toEqual(readFiles(bundle.directory));
  });
});

describe("a bundle is refused", () => {
  const sound = () => bundle.metafile;
  const input = { bytes: 1, imports: [] } as const;
  const problemsWith = (path: string) =>
    findBundleProblems({ ...sound(), inputs: { ...sound().inputs, [path]: { ...input, imports: [] } } });

  test.each([
    "node_modules/aws-cdk-lib/core/index.js",
    "node_modules/constructs/lib/index.js",
    "node_modules/@modelcontextprotocol/server/dist/index.js",
    "node_modules/zod/node_modules/vitest/index.js",
    "../elsewhere/node_modules/fauxqs/dist/app.js",
    "test/kit/manual-clock.ts",
    "local/server.ts",
    "cdk/bundle.ts",
    "skills/pins.json",
    "package.json",
  ])("with %s in it", (path) => {
    expect(problemsWith(path)).toEqual([expect.stringMatching(new RegExp(`^${path} `))]);
  });

  test("with a dynamic import that loses its names", () => {
    const entryPoint = "node_modules/old/index.js";
    const inputs = { ...sound().inputs, [entryPoint]: { bytes: 1, imports: [], format: "cjs" as const } };
    const output = { bytes: 1, imports: [], exports: ["default"], inputs: {}, entryPoint };
    const problems = findBundleProblems({ inputs, outputs: { ...sound().outputs, "old-X.mjs": output } });
    expect(problems).toEqual([expect.stringMatching(/^node_modules\/old\/index\.js /)]);
  });

  test("without pins, and not for what the functions are made of", () => {
    const { "approved-pins:pins.json": pins, ...others } = sound().inputs;
    expect(pins).toBeDefined();
    expect(findBundleProblems({ ...sound(), inputs: others })).toHaveLength(1);
    expect(Object.keys(others).length).toBeGreaterThan(100);
    expect(findBundleProblems(sound())).toEqual([]);
  });
});

test("the packaged version is the one that package.json says", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const index = readFileSync(join(bundle.directory, "index.mjs"), "utf8");
  expect(index).toContain(`PRODUCT_VERSION = "${version}"`);
});
