import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { type Bundles, placeProject } from "../../cdk/bundle.ts";
import { FUNCTION_NAMES, type FunctionName } from "../../cdk/entry-points.ts";
import { formatPins } from "../../functions/repository/pins.ts";
import { type Files, readFiles } from "./kit/bundle-files.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

const temp = makeTempDirectory();
const LOADING: readonly FunctionName[] = ["http", "worker", "refresh"];

const PIN = { digest: "0".repeat(64), files: [{ path: "SKILL.md", sha256: "5".repeat(64), size: 7 }] };
const SERVERS = JSON.stringify({ mcpServers: { acme: { url: "https://mcp.acme.test/" } } });
const ACME = {
  skills: {
    pins: new Map([["acme", new Map([["triage", PIN]])]]),
    files: [{ path: "acme/triage/SKILL.md", content: Buffer.from("Triage.") }],
  },
  approvals: ["local", "triage@1"],
  servers: { json: SERVERS },
} as const;

describe("a project placed where another was before, under a private umask", () => {
  const code = join(temp, "code");
  const directory = join(temp, "bundles");
  let bundles: Bundles;
  const filesOf = (name: FunctionName): Files => readFiles(bundles[name].directory);

  beforeAll(() => {
    for (const name of FUNCTION_NAMES) {
      mkdirSync(join(code, name), { recursive: true });
      writeFileSync(join(code, name, "index.mjs"), `// ${name}\n`);
      writeFileSync(join(code, name, "chunk-A.mjs"), "");
    }
    mkdirSync(join(directory, "http/skills/old"), { recursive: true });
    writeFileSync(join(directory, "http/skills/old/SKILL.md"), "Old.");
    writeFileSync(join(directory, "http/old.mjs"), "");
    const before = process.umask(0o077);
    try {
      bundles = placeProject({ code, ...ACME, directory });
    } finally {
      process.umask(before);
    }
  });

  test("has each function's own code, what it imports of the project, and nothing of what was there", () => {
    for (const name of FUNCTION_NAMES) {
      const approvals = [["approvals.json", '["local","triage@1"]']];
      const loaded = [
        ["pins.json", formatPins(ACME.skills.pins)],
        ["skills/acme/triage/SKILL.md", "Triage."],
      ];
      expect([...filesOf(name)], name).toEqual([
        ...(LOADING.includes(name) ? approvals : []),
        ["chunk-A.mjs", ""],
        ["index.mjs", `// ${name}\n`],
        ...(name === "dead-jobs" ? [] : [["mcp.json", SERVERS]]),
        ...(LOADING.includes(name) ? loaded : []),
      ]);
    }
  });

  test("is readable for everybody", () => {
    for (const name of FUNCTION_NAMES) {
      const modes = [...filesOf(name).keys()].map((path) => statSync(join(directory, name, path)).mode & 0o777);
      expect(new Set(modes)).toEqual(new Set([0o644]));
    }
  });

  test("leaves the code as it was, for the next project", () => {
    for (const name of FUNCTION_NAMES) {
      expect([...readFiles(join(code, name)).keys()]).toEqual(["chunk-A.mjs", "index.mjs"]);
    }
  });
});

test("code that was not built is not taken for code of no files", () => {
  expect(() => placeProject({ code: join(temp, "none"), ...ACME, directory: join(temp, "nothing") })).toThrow("ENOENT");
});
