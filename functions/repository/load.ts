import { SkillError } from "../contract/fault.ts";
import type { CallableSkill, Skill, UnverifiedSkill } from "../contract/skill.ts";
import { digestOfEntries } from "./digest.ts";
import { PINS_FILE, type Pins, type RepositoryPins, type SkillPin } from "./pins.ts";
import { readCallable, readMarkdown, TOOL_JSON } from "./skill-files.ts";
import type { SkillManifest } from "./skill-manifest.ts";
import { readTree, systemCode, type Tree } from "./tree.ts";
import { type Difference, findDifferences, formatDifference, repositoryOf } from "./verify.ts";

/**
 * Bytes on disk -> verified skills, once, at cold start. A repository loads whole or not at all: half of a repository
 * is something that nobody approved. A refused one is left out with its reasons and never stops the others.
 */

export type LoadedRepository = {
  readonly status: "loaded";
  readonly name: string;
  readonly skills: readonly Skill[];
  readonly digest: string;
};
export type RefusedRepository = {
  readonly status: "refused";
  readonly name: string;
  readonly reasons: readonly string[];
};
export type RepositoryStatus = LoadedRepository | RefusedRepository;

export type LoadOptions = {
  /** Directory that holds one directory per repository. */
  readonly root: string;
  /** The approved pins; a function, so that unreadable pins refuse instead of stopping the service. */
  readonly pins: () => Pins;
  /** Names that `tool.json` may give as handler. */
  readonly handlers: ReadonlySet<string>;
  /** Names of the repositories wanted; undefined for every one that is pinned or present. */
  readonly wanted?: readonly string[] | undefined;
};

/** Stands for every repository when not even their names can be read. */
const ALL_REPOSITORIES = "*";

/** The state of every repository, in the order of their names. Throws only for a defect. */
export function loadRepositories({ root, pins: readPins, handlers, wanted }: LoadOptions): readonly RepositoryStatus[] {
  const read = { pins: attempt(readPins, pinsReason), tree: attempt(() => readTree(root), treeReason) };
  const names = [...new Set(wanted ?? repositoryNames(read.pins.value, read.tree.value))].toSorted();
  const reasons = [read.tree, read.pins].flatMap(({ reason }) => reason ?? []);
  const { value: pins } = read.pins;
  const { value: tree } = read.tree;
  if (pins === undefined || tree === undefined) {
    const refused = names.length === 0 && wanted === undefined ? [ALL_REPOSITORIES] : names;
    return refused.map((name) => ({ status: "refused", name, reasons }));
  }
  const differences = findDifferences(tree, pins);
  return names.map((name) => loadRepository({ name, pins, tree, differences, handlers }));
}

type Attempt<T> = { readonly value?: T; readonly reason?: string };

function attempt<T>(act: () => T, toReason: (error: unknown) => string): Attempt<T> {
  try {
    return { value: act() };
  } catch (error) {
    return { reason: toReason(error) };
  }
}

/** Whatever was thrown: without pins nothing is used, and the service stays up to say so. */
function pinsReason(error: unknown): string {
  return error instanceof SkillError ? error.message : `${PINS_FILE} cannot be read; write it with skillbroker pin`;
}

function treeReason(error: unknown): string {
  return `the skills directory cannot be read (${systemCode(error)})`;
}

function repositoryNames(pins: Pins | undefined, tree: Tree | undefined): readonly string[] {
  const present = [...(tree?.files ?? []), ...(tree?.problems ?? [])].flatMap(({ path }) => repositoryOf(path) ?? []);
  return [...(pins?.keys() ?? []), ...present];
}

type Loading = {
  readonly name: string;
  readonly pins: Pins;
  readonly tree: Tree;
  readonly differences: readonly Difference[];
  readonly handlers: ReadonlySet<string>;
};

function loadRepository({ name, pins, tree, differences, handlers }: Loading): RepositoryStatus {
  const pinned = pins.get(name);
  const refusals = differences.filter(({ repository }) => (repository ?? name) === name).map(formatDifference);
  if (pinned === undefined) refusals.unshift(`${name}/ has no pins; run skillbroker pin`);
  if (pinned === undefined || refusals.length > 0) return { status: "refused", name, reasons: refusals };
  const read = [...pinned].map(([directory, pin]) => readSkill({ repository: name, directory, pin, tree, handlers }));
  const skills = read.flatMap(({ skill }) => skill ?? []).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const reasons = [...read.flatMap(({ problems }) => problems), ...findRefTwins(skills)];
  if (reasons.length > 0) return { status: "refused", name, reasons };
  return { status: "loaded", name, skills, digest: digestOfRepository(pinned) };
}

type SkillSource = {
  readonly repository: string;
  readonly directory: string;
  readonly pin: SkillPin;
  readonly tree: Tree;
  readonly handlers: ReadonlySet<string>;
};
type ReadSkill = { readonly skill?: Skill; readonly problems: readonly string[] };

/** Reads one skill whose bytes are known to fit `pin`. */
function readSkill(source: SkillSource): ReadSkill {
  const prefix = `${source.repository}/${source.directory}/`;
  const contents = new Map(
    source.tree.files.flatMap(({ path, content }) =>
      path.startsWith(prefix) ? [[path.slice(prefix.length), content] as const] : [],
    ),
  );
  const markdown = readMarkdown(prefix, contents);
  const callable = readCallable(prefix, contents, source.handlers);
  const problems = [...markdown.problems, ...callable.problems];
  if (markdown.manifest === undefined || problems.length > 0) return { problems };
  return { skill: makeSkill(source, markdown.manifest, callable.callable), problems: [] };
}

function makeSkill(source: SkillSource, manifest: SkillManifest, callable: CallableSkill | undefined): Skill {
  const { name: _, allowedTools, includes, ...described } = manifest;
  const unverified: UnverifiedSkill = {
    ...described,
    name: `${source.repository}/${source.directory}`,
    origin: source.repository,
    toolRefs: allowedTools,
    includes: includes.map((name) => (name.includes("/") ? name : `${source.repository}/${name}`)),
    callable,
    files: source.pin.files,
    digest: source.pin.digest,
  };
  return unverified as Skill;
}

function findRefTwins(skills: readonly Skill[]): string[] {
  const byRef = new Map<string, string>();
  return skills.flatMap(({ name, callable }) => {
    if (callable === undefined) return [];
    const other = byRef.get(callable.ref);
    byRef.set(callable.ref, name);
    return other === undefined ? [] : [`${name}/${TOOL_JSON}: ${callable.ref} is already the ref of ${other}`];
  });
}

/** One digest for a repository: over its skills' names and digests, framed like a skill's files. */
function digestOfRepository(pins: RepositoryPins): string {
  return digestOfEntries([...pins].map(([path, { digest }]) => ({ path, content: Buffer.from(digest) })));
}
