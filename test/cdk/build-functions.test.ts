import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Metafile } from "esbuild";
import { beforeAll, describe, expect, test } from "vitest";
import { buildFunctions } from "../../cdk/build-functions.ts";
import { packagesAtStart } from "../../cdk/bundle-check.ts";
import { ENTRY_POINTS, FUNCTION_NAMES, type FunctionName } from "../../cdk/entry-points.ts";
import { codeIn, type Files, readFiles } from "./kit/bundle-files.ts";
import { LATER, SERVERS, writeSources } from "./kit/function-sources.ts";
import { ROOT } from "./kit/run-app.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

/** Mostly a project of a few lines; that the real sources are built well, synth.test.ts shows by running them. */

const temp = makeTempDirectory();

describe("code built where other code was before, under a private umask", () => {
  const root = join(temp, "acme");
  const directory = join(temp, "code");
  const filesOf = (name: FunctionName): Files => readFiles(join(directory, name));
  const holding = (text: string) => FUNCTION_NAMES.filter((name) => codeIn(filesOf(name)).includes(text));

  beforeAll(async () => {
    writeSources(root, LATER);
    mkdirSync(join(directory, "http"), { recursive: true });
    writeFileSync(join(directory, "http/old.mjs"), "");
    const before = process.umask(0o077);
    try {
      await buildFunctions({ root, directory });
    } finally {
      process.umask(before);
    }
  });

  test("is each function's own, and nothing of what was there", () => {
    for (const name of FUNCTION_NAMES) {
      expect([...filesOf(name).keys()]).toEqual(["index.mjs", expect.stringMatching(/^later-[A-Z0-9]+\.mjs$/)]);
    }
  });

  test("is readable for everybody", () => {
    for (const name of FUNCTION_NAMES) {
      const modes = [...filesOf(name).keys()].map((path) => statSync(join(directory, name, path)).mode & 0o777);
      expect(new Set(modes)).toEqual(new Set([0o644]));
    }
  });

  test("imports from beside it what a project decides, as JSON", () => {
    for (const name of ["pins", "approvals"]) {
      expect(holding(`from "./${name}.json" with { type: "json" }`)).toEqual(["http", "worker", "refresh"]);
    }
    expect(holding('from "./mcp.json" with { type: "json" }')).toEqual(
      FUNCTION_NAMES.filter((name) => name !== "dead-jobs"),
    );
  });

  test("reads what is imported dynamically from a file of its own", () => {
    for (const name of FUNCTION_NAMES) expect(filesOf(name).get("index.mjs")).not.toContain("when it is needed");
    expect(holding("when it is needed")).toEqual(FUNCTION_NAMES);
  });
});

test("what is not fit to be deployed is told of every function in one list, and nothing is written", async () => {
  const root = join(temp, "unfit");
  const directory = join(temp, "none");
  writeSources(root, LATER);
  for (const name of FUNCTION_NAMES) writeFileSync(join(root, ENTRY_POINTS[name].source), SERVERS + LATER);
  const wanted = (name: FunctionName) => {
    const { source, loadsSkills } = ENTRY_POINTS[name];
    if (name === "dead-jobs") return [`  ${name}: ${source} imports mcp.json`];
    return loadsSkills ? ["pins", "approvals"].map((each) => `  ${name}: ${source} does not import ${each}.json`) : [];
  };
  await expect(buildFunctions({ root, directory })).rejects.toMatchObject({
    code: "DEFECT",
    message: `the bundles are not fit to be deployed:\n${FUNCTION_NAMES.flatMap(wanted).join("\n")}`,
  });
  expect(existsSync(directory)).toBe(false);
});

describe("the code of the service", () => {
  let accounts: ReadonlyMap<FunctionName, Metafile>;

  beforeAll(async () => {
    accounts = await buildFunctions({ root: ROOT, directory: join(temp, "service") });
  });

  test.each(["http", "worker"] as const)(
    "%s reads at its start nothing that only some requests need, but has it",
    (name) => {
      const metafile = accounts.get(name) ?? { inputs: {}, outputs: {} };
      const lazy = ["ajv", "re2js", ...ENTRY_POINTS[name].lazyPackages];
      const atStart = packagesAtStart(metafile, ENTRY_POINTS[name].source);
      expect(atStart).toContain("zod");
      expect(lazy.filter((each) => atStart.has(each))).toEqual([]);
      const inputs = Object.keys(metafile.inputs);
      const there = lazy.filter((each) => inputs.some((input) => input.includes(`node_modules/${each}/`)));
      expect(lazy.filter((each) => !there.includes(each))).toEqual([]);
    },
  );
});
