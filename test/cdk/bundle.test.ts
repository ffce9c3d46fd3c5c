import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { type Bundles, bundleFunctions } from "../../cdk/bundle.ts";
import { ENTRY_POINTS } from "../../cdk/entry-points.ts";
import { codeIn, type Files, FUNCTION_NAMES, readFiles, skillsIn } from "./kit/bundle-files.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

/** A project of a few lines; that the real sources are bundled well, synth.test.ts shows. */

const temp = makeTempDirectory();
const LOADING = ["http", "refresh"];

const PIN = { digest: "0".repeat(64), files: [{ path: "SKILL.md", sha256: "5".repeat(64), size: 7 }] };
const ACME_URL = "https://mcp.acme.test/";
const ACME = {
  skills: {
    pins: new Map([["acme", new Map([["triage", PIN]])]]),
    files: [{ path: "acme/triage/SKILL.md", content: Buffer.from("Triage.") }],
  },
  servers: { names: ["acme"], json: JSON.stringify({ mcpServers: { acme: { url: ACME_URL } } }), secrets: [] },
} as const;

/** Sources like those of the functions: `lines` are added to each of them. */
function writeSources(root: string, lines: string): void {
  mkdirSync(join(root, "functions"), { recursive: true });
  for (const name of FUNCTION_NAMES) {
    const { source, loadsSkills } = ENTRY_POINTS[name];
    const pins = loadsSkills
      ? 'import pins from "../skills/pins.json" with { type: "json" };\nconsole.log(pins);\n'
      : "";
    writeFileSync(join(root, source), pins + lines);
  }
  writeFileSync(join(root, "functions/later.ts"), 'export const later = "read when it is needed";\n');
}

const SERVERS = 'import servers from "../mcp.json" with { type: "json" };\nconsole.log(servers);\n';
const LATER = 'export const handler = async () => (await import("./later.ts")).later;\n';

describe("bundles where others were before, made under a private umask", () => {
  const root = join(temp, "acme");
  const directory = join(temp, "bundles");
  let bundles: Bundles;
  const filesOf = (name: (typeof FUNCTION_NAMES)[number]): Files => readFiles(bundles[name].directory);
  const holding = (text: string) => FUNCTION_NAMES.filter((name) => codeIn(filesOf(name)).includes(text));

  beforeAll(async () => {
    writeSources(root, SERVERS + LATER);
    mkdirSync(join(directory, "http/skills/old"), { recursive: true });
    writeFileSync(join(directory, "http/skills/old/SKILL.md"), "Old.");
    writeFileSync(join(directory, "http/old.mjs"), "");
    const before = process.umask(0o077);
    try {
      bundles = await bundleFunctions({ root, ...ACME, directory });
    } finally {
      process.umask(before);
    }
  });

  test("hold their own code, the skills where they are loaded, and nothing of what was there", () => {
    for (const name of FUNCTION_NAMES) {
      const skills = LOADING.includes(name) ? [["skills/acme/triage/SKILL.md", "Triage."]] : [];
      expect([...skillsIn(filesOf(name))]).toEqual(skills);
      const others = [...filesOf(name).keys()].filter((path) => !path.startsWith("skills/"));
      expect(others).toEqual(["index.mjs", expect.stringMatching(/^later-[A-Z0-9]+\.mjs$/)]);
    }
  });

  test("are readable for everybody", () => {
    for (const name of FUNCTION_NAMES) {
      const modes = [...filesOf(name).keys()].map((path) => statSync(join(directory, name, path)).mode & 0o777);
      expect(new Set(modes)).toEqual(new Set([0o644]));
    }
  });

  test("have the pins compiled in where skills are loaded, the servers everywhere", () => {
    expect(holding("5".repeat(64))).toEqual(LOADING);
    expect(holding(ACME_URL)).toEqual(FUNCTION_NAMES);
  });

  test("read what is imported dynamically from a file of its own", () => {
    for (const name of FUNCTION_NAMES) expect(filesOf(name).get("index.mjs")).not.toContain("when it is needed");
    expect(holding("when it is needed")).toEqual(FUNCTION_NAMES);
  });
});

test("what is not fit to be deployed is told of every function in one list, and nothing is written", async () => {
  const root = join(temp, "unfit");
  const directory = join(temp, "none");
  writeSources(root, LATER);
  const message = FUNCTION_NAMES.map((name) => `  ${name}: ${ENTRY_POINTS[name].source} does not import mcp.json`);
  await expect(bundleFunctions({ root, ...ACME, directory })).rejects.toMatchObject({
    code: "DEFECT",
    message: `the bundles are not fit to be deployed:\n${message.join("\n")}`,
  });
  expect(existsSync(directory)).toBe(false);
});
