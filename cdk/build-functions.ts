import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type BuildOptions, type BuildResult, build, type Metafile, type Plugin } from "esbuild";
import { Fault } from "../functions/contract/fault.ts";
import { ENTRY_NAME } from "./bundle.ts";
import { findBundleProblems, PROJECT_MODULES, type ProjectModule, toOutputPath } from "./bundle-check.ts";
import { ENTRY_POINTS, FUNCTION_NAMES, type FunctionName } from "./entry-points.ts";

/**
 * Makes the code of the functions out of the sources, once, for every project: what a project decides is put beside it
 * by `placeProject`. The CDK's own bundling makes one file; here dynamic imports stay files of their own, so that a
 * cold start does not read what only some calls need.
 */

export type BuildPlaces = {
  /** Directory of the product's sources, the parent of `functions`. */
  readonly root: string;
  /** Where the code is written, each function's in a directory of its name; whatever is there is removed. */
  readonly directory: string;
};

/** yaml is CommonJS for Node and requires built-in modules, which an ES module cannot without this. */
const REQUIRE = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;

/**
 * Measured as processor time of a start over an empty one: as it is 4.1, one file instead of several 4.7, CommonJS
 * variants of the libraries (the default for Node) 4.8, minified 3.9. That last is not worth losing the names in a
 * logged stack; source maps inside the files cost up to 30 %.
 */
export const BUNDLING = {
  outExtension: { ".js": ".mjs" },
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  mainFields: ["module", "main"],
  banner: { js: REQUIRE },
  logLevel: "warning",
} as const satisfies BuildOptions;

/**
 * Gives esbuild's account of each function's code. Throws a `DEFECT` that lists everything in it that no function needs
 * or that would fail when it is used; then nothing is written.
 */
export async function buildFunctions(places: BuildPlaces): Promise<ReadonlyMap<FunctionName, Metafile>> {
  const compiled = await Promise.all(FUNCTION_NAMES.map((name) => compile(name, places)));
  const problems = compiled.flatMap(({ metafile, name }) =>
    findBundleProblems(metafile, ENTRY_POINTS[name]).map((problem) => `${name}: ${problem}`),
  );
  if (problems.length > 0)
    throw new Fault("DEFECT", `the bundles are not fit to be deployed:\n  ${problems.join("\n  ")}`);
  rmSync(places.directory, { recursive: true, force: true });
  for (const { outputFiles } of compiled) writeCode(outputFiles);
  return new Map(compiled.map(({ name, metafile }) => [name, metafile]));
}

type Compiled = BuildResult<{ metafile: true; write: false }> & { readonly name: FunctionName };

async function compile(name: FunctionName, { root, directory }: BuildPlaces): Promise<Compiled> {
  const built = await build({
    ...BUNDLING,
    absWorkingDir: root,
    entryPoints: [{ in: ENTRY_POINTS[name].source, out: ENTRY_NAME }],
    outdir: join(directory, name),
    plugins: PROJECT_MODULES.map(leftOut),
    metafile: true,
    write: false,
  });
  return { ...built, name };
}

/**
 * Wherever the file stands in the sources, it is beside the code when that runs: all code of a function is in one
 * directory.
 */
function leftOut(name: ProjectModule): Plugin {
  const filter = new RegExp(`/${name.replace(".", "\\.")}$`);
  const place = { path: toOutputPath(name), external: true };
  return { name: `left out: ${name}`, setup: ({ onResolve }) => onResolve({ filter }, () => place) };
}

function writeCode(files: Compiled["outputFiles"]): void {
  for (const { path, contents } of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, contents);
    chmodSync(path, 0o644);
  }
}
