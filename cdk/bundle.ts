import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type BuildOptions, type BuildResult, build, type Metafile, type Plugin } from "esbuild";
import { Fault } from "../functions/contract/fault.ts";
import { formatPins } from "../functions/repository/pins.ts";
import { findBundleProblems, PINS_MODULE, SERVERS_MODULE } from "./bundle-check.ts";
import { ENTRY_POINTS, type FunctionName } from "./entry-points.ts";
import type { DeclaredServers } from "./mcp-servers.ts";
import type { VerifiedSkills } from "./verified-skills.ts";

/**
 * Makes the directories that are deployed, one a function: code, and for those that load skills the pinned files beside
 * it. The CDK's own bundling makes one file; here dynamic imports stay files of their own, so that a cold start does
 * not read what only some calls need.
 */

export type BundleOptions = {
  /** Directory of the product's sources, the parent of `functions`. */
  readonly root: string;
  readonly skills: VerifiedSkills;
  readonly servers: DeclaredServers;
  /** Where the bundles are written, each in a directory of its function's name; whatever is there is removed. */
  readonly directory: string;
};
export type Bundle = { readonly directory: string; readonly metafile: Metafile };
export type Bundles = Readonly<Record<FunctionName, Bundle>>;

type BundledFile = { readonly path: string; readonly content: Uint8Array };

/** Name without `.mjs`: the handler is `index.handler`. */
export const ENTRY_NAME = "index";

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

/** Throws a `DEFECT` that lists everything in the bundles that no function needs or that would fail when it is used. */
export async function bundleFunctions(options: BundleOptions): Promise<Bundles> {
  rmSync(options.directory, { recursive: true, force: true });
  const [http, notify, refresh, reconcile] = await Promise.all([
    compile("http", options),
    compile("notify", options),
    compile("refresh", options),
    compile("reconcile", options),
  ]);
  const compiled = { http, notify, refresh, reconcile };
  const problems = Object.values(compiled).flatMap(({ metafile, name }) =>
    findBundleProblems(metafile, ENTRY_POINTS[name]).map((problem) => `${name}: ${problem}`),
  );
  if (problems.length > 0)
    throw new Fault("DEFECT", `the bundles are not fit to be deployed:\n  ${problems.join("\n  ")}`);
  return {
    http: write(http, options),
    notify: write(notify, options),
    refresh: write(refresh, options),
    reconcile: write(reconcile, options),
  };
}

type Compiled = BuildResult<{ metafile: true; write: false }> & { readonly name: FunctionName };

async function compile(name: FunctionName, options: BundleOptions): Promise<Compiled> {
  const { root, skills, servers } = options;
  const built = await build({
    ...BUNDLING,
    absWorkingDir: root,
    entryPoints: [{ in: ENTRY_POINTS[name].source, out: ENTRY_NAME }],
    outdir: directoryOf(name, options),
    plugins: [compiledIn(PINS_MODULE, formatPins(skills.pins)), compiledIn(SERVERS_MODULE, servers.json)],
    metafile: true,
    write: false,
  });
  return { ...built, name };
}

function directoryOf(name: FunctionName, { directory }: BundleOptions): string {
  return join(directory, name);
}

/**
 * Whatever names the file in the source: the pins compiled in are those that the skills were verified against, and the
 * servers those that were found fit for the cloud.
 */
function compiledIn({ namespace, name }: typeof PINS_MODULE | typeof SERVERS_MODULE, contents: string): Plugin {
  const pattern = name.replace(".", "\\.");
  return {
    name: namespace,
    setup: ({ onResolve, onLoad }) => {
      onResolve({ filter: new RegExp(`/${pattern}$`) }, () => ({ path: name, namespace }));
      onLoad({ filter: new RegExp(`^${pattern}$`), namespace }, () => ({ contents, loader: "json" }));
    },
  };
}

function write({ name, metafile, outputFiles }: Compiled, options: BundleOptions): Bundle {
  const directory = directoryOf(name, options);
  const code = outputFiles.map(({ path, contents }) => ({ path: relative(directory, path), content: contents }));
  writeFiles(directory, code);
  if (ENTRY_POINTS[name].loadsSkills) writeFiles(join(directory, "skills"), options.skills.files);
  return { directory, metafile };
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
