import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { type BundleOptions, type Bundles, bundleFunctions } from "../../cdk/bundle.ts";
import { findBundleProblems, packagesAtStart } from "../../cdk/bundle-check.ts";
import { ENTRY_POINTS } from "../../cdk/entry-points.ts";
import { NO_SERVERS } from "../../cdk/mcp-servers.ts";
import { verifySkills } from "../../cdk/verified-skills.ts";
import { ROOT } from "./kit/run-app.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

const temp = makeTempDirectory();
const skills = verifySkills({ root: join(ROOT, "skills") });
const NAMES = ["http", "notify", "refresh", "reconcile"] as const;

const PIN = { digest: "0".repeat(64), files: [{ path: "SKILL.md", sha256: "5".repeat(64), size: 7 }] };
const ACME_URL = "https://mcp.acme.test/";
/** Another project than the checkout. */
const OTHER = {
  skills: {
    pins: new Map([["acme", new Map([["triage", PIN]])]]),
    files: [{ path: "acme/triage/SKILL.md", content: Buffer.from("Triage.") }],
  },
  servers: { names: ["acme"], json: JSON.stringify({ mcpServers: { acme: { url: ACME_URL } } }), secrets: [] },
} as const;

/** Path -> text of every file below a directory. */
function readFiles(directory: string): ReadonlyMap<string, string> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name));
  return new Map(paths.map((path) => [path.slice(directory.length + 1), readFileSync(path, "utf8")]));
}

type Files = ReadonlyMap<string, string>;
const skillsIn = (files: Files) => new Map([...files].filter(([path]) => path.startsWith("skills/")));
const codeIn = (files: Files) =>
  [...files].flatMap(([path, text]) => (path.startsWith("skills/") ? [] : text)).join("\n");

const bundleTo = (directory: string, options: Partial<BundleOptions> = {}) =>
  bundleFunctions({ root: ROOT, skills, servers: NO_SERVERS, directory, ...options });

const readAll = (bundles: Bundles) => ({
  http: readFiles(bundles.http.directory),
  notify: readFiles(bundles.notify.directory),
  refresh: readFiles(bundles.refresh.directory),
  reconcile: readFiles(bundles.reconcile.directory),
});

let bundles: Bundles;
let files: ReturnType<typeof readAll>;

beforeAll(async () => {
  bundles = await bundleTo(join(temp, "bundles"));
  files = readAll(bundles);
});

describe.each(NAMES)("the bundle of %s", (name) => {
  test("holds code, skill files where they are loaded, and nothing else", () => {
    const wanted = ENTRY_POINTS[name].loadsSkills ? skills.files : [];
    expect(skillsIn(files[name])).toEqual(
      new Map(wanted.map(({ path, content }) => [`skills/${path}`, Buffer.from(content).toString()])),
    );
    const others = [...files[name].keys()].filter((path) => !path.startsWith("skills/"));
    expect(others.filter((path) => !/^[A-Za-z0-9-]+\.mjs$/.test(path))).toEqual([]);
    expect(others).toContain("index.mjs");
  });

  test("is fit to be deployed", () => {
    expect(findBundleProblems(bundles[name].metafile, ENTRY_POINTS[name])).toEqual([]);
  });

  test("carries no source map", () => {
    expect(codeIn(files[name])).not.toMatch(/^\/\/# sourceMappingURL=/m);
  });
});

test("pins are in the functions that load skills, and in no other", () => {
  const [pin] = [...(skills.pins.get("builtin")?.values() ?? [])];
  const holding = NAMES.filter((name) => codeIn(files[name]).includes(String(pin?.digest)));
  expect(holding).toEqual(["http", "refresh"]);
});

test("HTTP reads at its start nothing that only some requests need, but has it", () => {
  const { metafile } = bundles.http;
  const lazy = ["ajv", "re2js", ...ENTRY_POINTS.http.lazyPackages];
  const atStart = packagesAtStart(metafile, ENTRY_POINTS.http.source);
  expect(atStart).toContain("zod");
  expect(lazy.filter((name) => atStart.has(name))).toEqual([]);
  const inputs = Object.keys(metafile.inputs);
  const there = lazy.filter((name) => inputs.some((input) => input.includes(`node_modules/${name}/`)));
  expect(lazy.filter((name) => !there.includes(name))).toEqual([]);
});

describe("the bundles of another project, where others were before", () => {
  const directory = join(temp, "others");
  let others: ReturnType<typeof readAll>;

  beforeAll(async () => {
    mkdirSync(join(directory, "http/skills/old"), { recursive: true });
    writeFileSync(join(directory, "http/skills/old/SKILL.md"), "Old.");
    writeFileSync(join(directory, "http/old.mjs"), "");
    const before = process.umask(0o077);
    try {
      others = readAll(await bundleTo(directory, OTHER));
    } finally {
      process.umask(before);
    }
  });

  test("hold its own skills, and nothing of what was there", () => {
    for (const name of ["http", "refresh"] as const) {
      expect([...skillsIn(others[name]).keys()]).toEqual(["skills/acme/triage/SKILL.md"]);
    }
    expect(others.http.has("old.mjs")).toBe(false);
  });

  test("are readable for everybody, under a private umask too", () => {
    for (const name of NAMES) {
      const modes = [...others[name].keys()].map((path) => statSync(join(directory, name, path)).mode & 0o777);
      expect(new Set(modes)).toEqual(new Set([0o644]));
    }
  });

  test("have its pins compiled in, not those of the checkout", () => {
    const [shipped] = [...(skills.pins.get("builtin")?.values() ?? [])];
    for (const name of ["http", "refresh"] as const) {
      expect(codeIn(others[name]).includes("5".repeat(64))).toBe(true);
      expect(codeIn(others[name]).includes(String(shipped?.digest))).toBe(false);
    }
  });

  test("have its servers compiled in, all of them", () => {
    const holding = (bundled: typeof files) => NAMES.filter((name) => codeIn(bundled[name]).includes(ACME_URL));
    expect({ others: holding(others), checkout: holding(files) }).toEqual({ others: NAMES, checkout: [] });
  });
});

test("the packaged version is the one that package.json says", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const code = codeIn(files.http);
  expect(code.match(/\bPRODUCT_VERSION = ".*"/g)).toEqual([`PRODUCT_VERSION = "${version}"`]);
});
