import type { Metafile } from "esbuild";
import type { EntryPoint } from "./entry-points.ts";

/** What must not be deployed, found in esbuild's account of a bundle rather than by running it. */

/** Modules that are left out of the code, as a project decides what is in them. */
export const PROJECT_MODULES = ["pins.json", "approvals.json", "mcp.json"] as const;
export type ProjectModule = (typeof PROJECT_MODULES)[number];

/** By what the code of a function imports such a module. */
export function toOutputPath(module: ProjectModule): string {
  return `./${module}`;
}

/** Whether the function has the module beside its code, and imports it. */
export function wantsModule({ loadsSkills, readsServers }: EntryPoint, module: ProjectModule): boolean {
  return module === "mcp.json" ? readsServers : loadsSkills;
}

/** What is wrong with the bundle of an entry point, one line each. */
export function findBundleProblems(metafile: Metafile, entry: EntryPoint): readonly string[] {
  return [
    ...findForeignInputs(metafile).map((input) => `${input} is nothing that a function needs`),
    ...findNamelessImports(metafile).map(
      (input) =>
        `${input} is CommonJS: a dynamic import of it loses every name but default; import it statically in a module ` +
        "of our own, and that module dynamically",
    ),
    ...PROJECT_MODULES.flatMap((module) => findMisplacedModule(metafile, module, entry)),
    ...findMisplacedPackages(metafile, entry),
  ];
}

/** Packages for building and testing; of the MCP SDK everything but the client. */
const FOREIGN_PACKAGE =
  /^(?:aws-cdk|aws-cdk-lib|constructs|esbuild|typescript|vite|vitest|fast-check|fauxqs|ical\.js|dependency-cruiser|@modelcontextprotocol\/(?!(?:client|core)$).*|(?:@vitest|@biomejs|@types)\/.*)$/;

/** Inputs that are neither sources of the functions nor libraries that run in them, by path from the root. */
function findForeignInputs({ inputs }: Metafile): readonly string[] {
  return Object.keys(inputs).filter((input) => {
    const packageName = packageOf(input);
    if (packageName !== undefined) return FOREIGN_PACKAGE.test(packageName);
    return !input.startsWith("functions/") && !input.startsWith("(disabled):");
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

function findMisplacedModule({ inputs }: Metafile, module: ProjectModule, entry: EntryPoint): readonly string[] {
  const wanted = wantsModule(entry, module);
  const all = Object.values(inputs).flatMap(({ imports }) => imports);
  const imports = all.filter(({ path, external }) => external === true && path === toOutputPath(module));
  if (imports.length > 0 !== wanted) return [`${entry.source} ${wanted ? "does not import" : "imports"} ${module}`];
  const untold = imports.filter((each) => each.with?.type !== "json");
  return untold.map(() => `${entry.source} imports ${module} without its type, so that Node would refuse it`);
}

function findMisplacedPackages(metafile: Metafile, entry: EntryPoint): readonly string[] {
  const all = packagesIn(Object.keys(metafile.inputs));
  const atStart = packagesAtStart(metafile, entry.source);
  return [
    ...entry.absentPackages.filter((name) => all.has(name)).map((name) => `${name} is not for ${entry.source}`),
    ...entry.lazyPackages
      .filter((name) => atStart.has(name))
      .map(
        (name) => `${name} is read at the start of ${entry.source}; import the module of ours that uses it dynamically`,
      ),
  ];
}

/** Packages in the files that an import of the entry point reads, before anything is called. */
export function packagesAtStart({ outputs }: Metafile, source: string): ReadonlySet<string> {
  const entries = Object.entries(outputs).filter(([, { entryPoint }]) => entryPoint === source);
  const reached = new Set(entries.map(([path]) => path));
  for (const path of reached) {
    for (const { kind, path: next } of outputs[path]?.imports ?? []) {
      if (kind === "import-statement") reached.add(next);
    }
  }
  return packagesIn([...reached].flatMap((path) => Object.keys(outputs[path]?.inputs ?? {})));
}

function packagesIn(inputs: readonly string[]): ReadonlySet<string> {
  return new Set(inputs.flatMap((input) => packageOf(input) ?? []));
}
