import type { Metafile } from "esbuild";
import { describe, expect, test } from "vitest";
import { findBundleProblems } from "../../cdk/bundle-check.ts";
import { ENTRY_POINTS, FUNCTION_NAMES, type FunctionName } from "../../cdk/entry-points.ts";

/** Hand-written accounts of bundles; that a real one is sound, bundle.test.ts shows. */

const PINS = "./pins.json";
const APPROVALS = "./approvals.json";
const SERVERS = "./mcp.json";
const LEFT_OUT: readonly string[] = [PINS, APPROVALS, SERVERS];

type Chunk = {
  /** Sources and libraries; also the modules that are left out, which the first of them imports. */
  readonly inputs: readonly string[];
  readonly imports?: readonly string[];
  readonly dynamicImports?: readonly string[];
};

/** Chunks by name; `index` is the entry point's. A name that ends in `.js` or `.ts` is also a dynamic entry. */
function metafileOf(
  name: FunctionName,
  chunks: Readonly<Record<string, Chunk>>,
  cjs: readonly string[] = [],
): Metafile {
  const metafile: Metafile = { inputs: {}, outputs: {} };
  for (const [path, chunk] of Object.entries(chunks)) {
    const leftOut = chunk.inputs.filter((input) => LEFT_OUT.includes(input)).map(importOf);
    for (const [index, input] of chunk.inputs.filter((input) => !LEFT_OUT.includes(input)).entries()) {
      const imports = index === 0 ? leftOut : [];
      metafile.inputs[input] = { bytes: 1, imports, format: cjs.includes(input) ? "cjs" : "esm" };
    }
    const entryPoint = path === "index" ? ENTRY_POINTS[name].source : path;
    metafile.outputs[path] = {
      bytes: 1,
      imports: [
        ...(chunk.imports ?? []).map((next) => ({ path: next, kind: "import-statement" as const })),
        ...(chunk.dynamicImports ?? []).map((next) => ({ path: next, kind: "dynamic-import" as const })),
        { path: "node:fs", kind: "import-statement" as const, external: true },
      ],
      exports: [],
      inputs: Object.fromEntries(chunk.inputs.map((input) => [input, { bytesInOutput: 1 }])),
      ...(/\.[jt]s$/.test(entryPoint) ? { entryPoint } : {}),
    };
  }
  return metafile;
}

const importOf = (path: string) => ({
  path,
  kind: "import-statement" as const,
  external: true,
  with: { type: "json" },
});

/** What the entry point of each function holds when all is well. */
const soundInputs = (name: FunctionName) => [
  ENTRY_POINTS[name].source,
  "functions/contract/env.ts",
  "node_modules/zod/index.js",
  "(disabled):node_modules/debug/browser.js",
  ...(READING.includes(name) ? [SERVERS] : []),
  ...(ENTRY_POINTS[name].loadsSkills ? [PINS, APPROVALS] : []),
];
/** Those that know of the declared servers. */
const READING: readonly FunctionName[] = ["http", "worker", "notify", "refresh", "reconcile"];

/** Problems of a bundle of one file that holds this too. */
const problemsWith = (name: FunctionName, ...paths: readonly string[]) =>
  findBundleProblems(metafileOf(name, { index: { inputs: [...soundInputs(name), ...paths] } }), ENTRY_POINTS[name]);

test.each(FUNCTION_NAMES)("what %s is made of is no problem", (name) => {
  expect(problemsWith(name)).toEqual([]);
});

describe("a bundle is refused", () => {
  test.each([
    "node_modules/aws-cdk-lib/core/index.js",
    "node_modules/constructs/lib/index.js",
    "node_modules/@modelcontextprotocol/server/dist/index.js",
    "node_modules/@modelcontextprotocol/client-tools/index.js",
    "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
    "node_modules/zod/node_modules/vitest/index.js",
    "../elsewhere/node_modules/fauxqs/dist/app.js",
    "test/kit/manual-clock.ts",
    "local/server.ts",
    "cdk/bundle.ts",
    "skills/pins.json",
    "mcp.json",
    "package.json",
  ])("with %s in it", (path) => {
    for (const name of FUNCTION_NAMES)
      expect(problemsWith(name, path)).toEqual([expect.stringMatching(`^${path} is nothing`)]);
  });

  test("with a dynamic import that loses its names", () => {
    const old = "node_modules/old/index.js";
    const chunks = { index: { inputs: soundInputs("http"), dynamicImports: [old] }, [old]: { inputs: [old] } };
    expect(findBundleProblems(metafileOf("http", chunks), ENTRY_POINTS.http)).toEqual([]);
    const problems = findBundleProblems(metafileOf("http", chunks, [old]), ENTRY_POINTS.http);
    expect(problems).toEqual([expect.stringMatching(/^node_modules\/old\/index\.js is CommonJS/)]);
  });

  test.each(READING)("of %s without the servers", (name) => {
    const inputs = soundInputs(name).filter((input) => input !== SERVERS);
    const problems = findBundleProblems(metafileOf(name, { index: { inputs } }), ENTRY_POINTS[name]);
    expect(problems).toEqual([`${ENTRY_POINTS[name].source} does not import mcp.json`]);
  });

  test.each(["http", "worker", "refresh"] as const)("of %s without pins or approvals", (name) => {
    for (const left of [PINS, APPROVALS]) {
      const inputs = soundInputs(name).filter((input) => input !== left);
      const problems = findBundleProblems(metafileOf(name, { index: { inputs } }), ENTRY_POINTS[name]);
      expect(problems).toEqual([`${ENTRY_POINTS[name].source} does not import ${left.slice(2)}`]);
    }
  });

  test("of dead-jobs with the servers, since it asks none", () => {
    expect(problemsWith("dead-jobs", SERVERS)).toEqual(["functions/dead-jobs.lambda.ts imports mcp.json"]);
  });

  test("with a module left out of which Node would not know that it is JSON", () => {
    const metafile = metafileOf("notify", { index: { inputs: soundInputs("notify") } });
    for (const each of Object.values(metafile.inputs).flatMap(({ imports }) => imports)) delete each.with;
    expect(findBundleProblems(metafile, ENTRY_POINTS.notify)).toEqual([
      expect.stringMatching(/^functions\/notify\.lambda\.ts imports mcp\.json without its type/),
    ]);
  });

  test.each(["dead-jobs", "notify", "reconcile"] as const)(
    "of %s with pins or approvals, since it loads no skills",
    (name) => {
      for (const left of [PINS, APPROVALS]) {
        expect(problemsWith(name, left)).toEqual([`${ENTRY_POINTS[name].source} imports ${left.slice(2)}`]);
      }
    },
  );

  test.each([
    ["notify", "@modelcontextprotocol/client"],
    ["notify", "@modelcontextprotocol/core"],
    ["notify", "@aws-sdk/client-secrets-manager"],
    ["notify", "@aws-sdk/client-ssm"],
    ["reconcile", "@modelcontextprotocol/client"],
    ["reconcile", "@aws-sdk/client-ssm"],
    ["refresh", "@aws-sdk/client-sqs"],
    ["worker", "@aws-sdk/client-sqs"],
    ["dead-jobs", "@aws-sdk/client-sqs"],
  ] as const)("of %s with %s, even where it is read late", (name, packageName) => {
    const late = `node_modules/${packageName}/index.js`;
    const chunks = { index: { inputs: soundInputs(name), dynamicImports: [late] }, [late]: { inputs: [late] } };
    const problems = findBundleProblems(metafileOf(name, chunks), ENTRY_POINTS[name]);
    expect(problems).toEqual([`${packageName} is not for ${ENTRY_POINTS[name].source}`]);
  });

  test.each([
    ["notify", "@aws-sdk/client-sqs"],
    ["reconcile", "@aws-sdk/client-sqs"],
    ["refresh", "@modelcontextprotocol/client"],
    ["refresh", "@aws-sdk/client-secrets-manager"],
  ] as const)("but not of %s with %s", (name, packageName) => {
    expect(problemsWith(name, `node_modules/${packageName}/index.js`)).toEqual([]);
  });
});

describe.each([
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/core",
  "@aws-sdk/client-sqs",
  "@aws-sdk/client-secrets-manager",
  "@aws-sdk/client-ssm",
])("%s in http", (packageName) => {
  const library = `node_modules/${packageName}/dist/index.js`;
  const ours = "functions/mcp/client/tool-source.ts";
  const eager = [expect.stringMatching(`^${packageName} is read at the start of functions/http.lambda.ts`)];
  const problemsOf = (chunks: Readonly<Record<string, Chunk>>) =>
    findBundleProblems(metafileOf("http", chunks), ENTRY_POINTS.http);

  test("is fine behind a dynamic import", () => {
    const index = { inputs: soundInputs("http"), dynamicImports: [ours] };
    expect(
      problemsOf({ index, [ours]: { inputs: [ours], imports: ["chunk-1"] }, "chunk-1": { inputs: [library] } }),
    ).toEqual([]);
  });

  test("is refused in the entry point's own file", () => {
    expect(problemsWith("http", library)).toEqual(eager);
  });

  test("is refused in a file that a file of the start imports, also where files import each other", () => {
    const index = { inputs: soundInputs("http"), imports: ["chunk-1"], dynamicImports: [ours] };
    const chunks = {
      "chunk-1": { inputs: ["functions/wiring/create-api.ts"], imports: ["chunk-2", "index"] },
      "chunk-2": { inputs: [library], imports: ["chunk-1"] },
    };
    expect(problemsOf({ index, ...chunks, [ours]: { inputs: [ours], imports: ["chunk-2"] } })).toEqual(eager);
  });
});
