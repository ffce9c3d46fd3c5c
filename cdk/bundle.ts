import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import { Fault } from "../functions/contract/fault.ts";
import { formatPins, type Pins } from "../functions/repository/pins.ts";
import type { VerifiedSkills } from "./verified-skills.ts";

/**
 * Makes the directory that is deployed: code, and the pinned skill files beside it. The CDK's own bundling makes one
 * file; here dynamic imports stay files of their own, so that a cold start does not read what only some calls need.
 */

export type BundleOptions = {
  /** Directory of the product's sources, the parent of `functions`. */
  readonly root: string;
  readonly skills: VerifiedSkills;
  /** Where the bundle is written; whatever is there is removed. */
  readonly directory: string;
};
export type Bundle = { readonly directory: string; readonly metafile: Metafile };

type BundledFile = { readonly path: string; readonly content: Uint8Array };

const ENTRY = "functions/http.lambda.ts";
/** Name without `.mjs`: the handler is `index.handler`. */
export const ENTRY_NAME = "index";
const PINS_NAMESPACE = "approved-pins";
const PINS_INPUT = `${PINS_NAMESPACE}:pins.json`;

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

/** Throws a `DEFECT` that lists everything in the bundle that no function needs or that would fail when it is used. */
export async function bundleHttpFunction({ root, skills, directory }: BundleOptions): Promise<Bundle> {
  rmSync(directory, { recursive: true, force: true });
  const { metafile, outputFiles } = await build({
    ...BUNDLING,
    absWorkingDir: root,
    entryPoints: [{ in: ENTRY, out: ENTRY_NAME }],
    outdir: directory,
    plugins: [approvedPins(skills.pins)],
    metafile: true,
    write: false,
  });
  const problems = findBundleProblems(metafile);
  if (problems.length > 0)
    throw new Fault("DEFECT", `the bundle is not fit to be deployed:\n  ${problems.join("\n  ")}`);
  const code = outputFiles.map(({ path, contents }) => ({ path: relative(directory, path), content: contents }));
  writeFiles(directory, code);
  writeFiles(join(directory, "skills"), skills.files);
  return { directory, metafile };
}

/** Whatever names it in the source, the pins compiled in are those that the skills were verified against. */
function approvedPins(pins: Pins): Plugin {
  return {
    name: PINS_NAMESPACE,
    setup: ({ onResolve, onLoad }) => {
      onResolve({ filter: /\/pins\.json$/ }, () => ({ path: "pins.json", namespace: PINS_NAMESPACE }));
      onLoad({ filter: /^pins\.json$/, namespace: PINS_NAMESPACE }, () => ({
        contents: formatPins(pins),
        loader: "json",
      }));
    },
  };
}

/** What is wrong with a bundle, one line each. */
export function findBundleProblems(metafile: Metafile): readonly string[] {
  const foreign = findForeignInputs(metafile).map((input) => `${input} is nothing that a function needs`);
  const nameless = findNamelessImports(metafile).map(
    (input) =>
      `${input} is CommonJS: a dynamic import of it loses every name but default; import it statically in a module of ` +
      "our own, and that module dynamically",
  );
  const pins = PINS_INPUT in metafile.inputs ? [] : [`${ENTRY} does not import pins.json`];
  return [...foreign, ...nameless, ...pins];
}

/** Packages for building and testing, and the MCP SDK, which belongs to functions of its own. */
const FOREIGN_PACKAGE =
  /^(?:aws-cdk|aws-cdk-lib|constructs|esbuild|typescript|vite|vitest|fast-check|fauxqs|ical\.js|dependency-cruiser|(?:@modelcontextprotocol|@vitest|@biomejs|@types)\/.*)$/;

/** Inputs that are neither sources of the functions nor libraries that run in them, by path from the root. */
function findForeignInputs({ inputs }: Metafile): readonly string[] {
  return Object.keys(inputs).filter((input) => {
    const packageName = packageOf(input);
    if (packageName !== undefined) return FOREIGN_PACKAGE.test(packageName);
    return input !== PINS_INPUT && !input.startsWith("functions/") && !input.startsWith("(disabled):");
  });
}

function packageOf(input: string): string | undefined {
  const [, inside] = /^.*(?:^|\/)node_modules\/(.*)$/.exec(input) ?? [];
  return inside === undefined ? undefined : /^(?:@[^/]+\/)?[^/]+/.exec(inside)?.[0];
}

/** Node finds the names of a CommonJS module that is imported; esbuild gives a dynamic import of one only `default`. */
function findNamelessImports({ inputs, outputs }: Metafile): readonly string[] {
  const entries = Object.values(outputs).flatMap(({ entryPoint }) => entryPoint ?? []);
  return entries.filter((entry) => inputs[entry]?.format === "cjs");
}

/** Readable for everybody, whatever the umask: the archive keeps modes, and Lambda does not run as its owner. */
function writeFiles(directory: string, files: readonly BundledFile[]): void {
  for (const { path, content } of files) {
    const target = join(directory, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
    chmodSync(target, 0o644);
  }
}
