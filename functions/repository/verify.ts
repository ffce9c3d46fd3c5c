import { sha256Hex } from "../contract/json.ts";
import { digestOfEntries } from "./digest.ts";
import { type FilePin, PINS_FILE, type Pins, type RepositoryPins, type SkillPin } from "./pins.ts";
import type { Tree, TreeFile } from "./tree.ts";

/** Compares what is on disk with what was approved, and names every difference. */

export type Difference = {
  /** The repository that the difference is in; undefined for what lies beside the repositories. */
  readonly repository: string | undefined;
  /** Relative to the directory that holds the repositories. */
  readonly path: string;
  readonly reason: string;
};

/** Every difference between the tree and the pins, in path order; none when each byte is as approved. */
export function findDifferences(tree: Tree, pins: Pins): readonly Difference[] {
  const found = [...tree.problems, ...unpinnedFiles(tree, pins), ...pinnedDifferences(tree, pins)];
  return found
    .map(({ path, reason }) => ({ repository: repositoryOf(path), path, reason }))
    .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}

export function formatDifference({ path, reason }: Found): string {
  return `${path} ${reason}`;
}

type Found = { readonly path: string; readonly reason: string };

/** The first directory of a path; undefined for what lies beside the repositories. */
export function repositoryOf(path: string): string | undefined {
  const slash = path.indexOf("/");
  return slash === -1 ? undefined : path.slice(0, slash);
}

function unpinnedFiles(tree: Tree, pins: Pins): Found[] {
  const pinned = new Set([PINS_FILE, ...[...pins].flatMap(([name, skills]) => pinnedPaths(name, skills))]);
  const twins = new Map([...pinned].map((path) => [path.toLowerCase(), path]));
  return tree.files
    .filter(({ path }) => !pinned.has(path))
    .map(({ path }) => {
      const twin = twins.get(path.toLowerCase());
      const hint = twin === undefined ? "" : `; ${twin} is, and upper and lower case differ`;
      return { path, reason: `is not pinned in ${PINS_FILE}${hint}` };
    });
}

function pinnedPaths(repository: string, skills: RepositoryPins): string[] {
  return [...skills].flatMap(([skill, { files }]) => files.map(({ path }) => `${repository}/${skill}/${path}`));
}

function pinnedDifferences(tree: Tree, pins: Pins): Found[] {
  const byPath = new Map(tree.files.map((file) => [file.path, file]));
  // A file that is there but could not be read has its reason already; "missing" would send the reader astray.
  const explained = new Set(tree.problems.map(({ path }) => path));
  return [...pins]
    .flatMap(([repository, skills]) =>
      [...skills].flatMap(([skill, pin]) => skillDifferences(`${repository}/${skill}`, pin, byPath)),
    )
    .filter(({ path, reason }) => reason !== MISSING || !explained.has(path));
}

const MISSING = `is pinned in ${PINS_FILE} but missing`;

function skillDifferences(directory: string, pin: SkillPin, byPath: ReadonlyMap<string, TreeFile>): Found[] {
  const differing = pin.files.flatMap((file) => fileDifference(directory, file, byPath));
  return differing.length > 0 ? differing : digestDifference(directory, pin, byPath);
}

function fileDifference(directory: string, pin: FilePin, byPath: ReadonlyMap<string, TreeFile>): Found[] {
  const path = `${directory}/${pin.path}`;
  const file = byPath.get(path);
  if (file === undefined) return [{ path, reason: MISSING }];
  const sha256 = sha256Hex(file.content);
  if (sha256 === pin.sha256 && file.content.length === pin.size) return [];
  if (sha256 !== pin.sha256 && differsInLineEndings(file.content, pin.sha256)) {
    const reason =
      "differs from its pin only in line endings (CRLF or LF); check .gitattributes and check it out again";
    return [{ path, reason }];
  }
  const pinned = `${pin.sha256.slice(0, 12)}… (${pin.size} bytes)`;
  const got = `${sha256.slice(0, 12)}… (${file.content.length} bytes)`;
  return [{ path, reason: `was changed: ${pinned} pinned in ${PINS_FILE}, ${got} found` }];
}

/** Reached only when every file fits its own pin: then the digest in `pins.json`, or its list of files, was edited. */
function digestDifference(directory: string, pin: SkillPin, byPath: ReadonlyMap<string, TreeFile>): Found[] {
  const entries = pin.files.flatMap(({ path }) => {
    const file = byPath.get(`${directory}/${path}`);
    return file === undefined ? [] : [{ path, content: file.content }];
  });
  const digest = digestOfEntries(entries);
  if (digest === pin.digest) return [];
  return [{ path: directory, reason: `has the digest ${digest}, but ${PINS_FILE} says ${pin.digest}` }];
}

function differsInLineEndings(content: Uint8Array, pinned: string): boolean {
  const text = Buffer.from(content).toString("latin1");
  const unix = text.replaceAll("\r\n", "\n");
  const variants = [unix, unix.replaceAll("\n", "\r\n")];
  return variants.some((variant) => sha256Hex(Buffer.from(variant, "latin1")) === pinned);
}
