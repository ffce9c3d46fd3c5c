import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { formatPins } from "../functions/repository/pins.ts";
import { PROJECT_MODULES, type ProjectModule, wantsModule } from "./bundle-check.ts";
import { ENTRY_POINTS, type FunctionName } from "./entry-points.ts";
import type { DeclaredServers } from "./mcp-servers.ts";
import type { VerifiedSkills } from "./verified-skills.ts";

/**
 * Makes the directories that are deployed, one a function, out of code that was built before and of the project: it is
 * done at once, since a construct cannot wait, and needs nothing but Node, since who uses one has no bundler.
 */

export type ProjectPlaces = {
  /** Directory of the built code, that of each function in a directory of its name. */
  readonly code: string;
  readonly skills: Pick<VerifiedSkills, "pins" | "files">;
  /** Approved refs and bundles. */
  readonly approvals: readonly string[];
  readonly servers: Pick<DeclaredServers, "json">;
  /** Where the bundles are written, each in a directory of its function's name; whatever is there is removed. */
  readonly directory: string;
};
export type Bundle = { readonly directory: string };
export type Bundles = Readonly<Record<FunctionName, Bundle>>;

type BundledFile = { readonly path: string; readonly content: Uint8Array | string };

/** Name without `.mjs`: the handler is `index.handler`. */
export const ENTRY_NAME = "index";

/** One of each. */
export function ofEachFunction<T>(make: (name: FunctionName) => T): Readonly<Record<FunctionName, T>> {
  return {
    http: make("http"),
    worker: make("worker"),
    "dead-jobs": make("dead-jobs"),
    notify: make("notify"),
    refresh: make("refresh"),
    reconcile: make("reconcile"),
  };
}

/**
 * Beside each function's code, where skills are loaded, the pins that the skills were verified against, the files of
 * these digests and the approvals, and where servers are asked those that were found fit for the cloud. All of it is
 * part of the asset that is deployed by its digest, and none of it fills a function's environment, which has 4 KiB.
 * Throws a system error when there is no such code.
 */
export function placeProject(places: ProjectPlaces): Bundles {
  rmSync(places.directory, { recursive: true, force: true });
  return ofEachFunction((name) => {
    const directory = join(places.directory, name);
    writeFiles(directory, [...readCode(join(places.code, name)), ...decidedFor(name, places)]);
    return { directory };
  });
}

function readCode(directory: string): readonly BundledFile[] {
  return readdirSync(directory).map((path) => ({ path, content: readFileSync(join(directory, path)) }));
}

/** What the code of a function imports or reads and the project decides, as the check of the built code has it. */
function decidedFor(name: FunctionName, { skills, approvals, servers }: ProjectPlaces): readonly BundledFile[] {
  const entry = ENTRY_POINTS[name];
  const contents: Readonly<Record<ProjectModule, string>> = {
    "pins.json": formatPins(skills.pins),
    "approvals.json": JSON.stringify(approvals),
    "mcp.json": servers.json,
  };
  const wanted = PROJECT_MODULES.filter((module) => wantsModule(entry, module));
  const modules = wanted.map((path) => ({ path, content: contents[path] }));
  const files = skills.files.map(({ path, content }) => ({ path: join("skills", path), content }));
  return entry.loadsSkills ? [...modules, ...files] : modules;
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
