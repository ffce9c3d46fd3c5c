import { readdirSync } from "node:fs";
import { SkillError } from "../contract/fault.ts";
import type { CallableSkill, Skill, UnverifiedSkill } from "../contract/skill.ts";
import { digestOfEntries } from "./digest.ts";
import type { Pins, RepositoryPins, SkillPin } from "./pins.ts";
import { formatDiagnostic, parseSkillMarkdown, type SkillManifest } from "./skill-md.ts";
import { decodeUtf8, parseToolJson } from "./tool-json.ts";
import { readTree, type Tree } from "./tree.ts";
import { findDifferences, formatDifference } from "./verify.ts";

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

/** Longest SKILL.md in bytes; the largest seen in public repositories has 294,426. */
export const MAX_SKILL_MD_BYTES = 512 * 1024;
const SKILL_MD = "SKILL.md";
const TOOL_JSON = "tool.json";

/** The state of every repository, in the order of their names. Throws only for a defect. */
export function loadRepositories(options: LoadOptions): readonly RepositoryStatus[] {
  try {
    const pins = options.pins();
    const tree = readTree(options.root);
    const names = options.wanted ?? repositoryNames(pins, tree);
    return names.toSorted().map((name) => loadRepository({ name, pins, tree, handlers: options.handlers }));
  } catch (error) {
    const reason = refusalReason(error);
    const names = options.wanted ?? directoryNames(options.root);
    return names.toSorted().map((name) => ({ status: "refused", name, reasons: [reason] }));
  }
}

/** The skills of one repository. Throws `SkillError` with every reason when it is refused. */
export function skillsOf(status: RepositoryStatus): readonly Skill[] {
  if (status.status === "loaded") return status.skills;
  throw new SkillError(`repository "${status.name}" is refused: ${status.reasons.join("; ")}`);
}

type Loading = {
  readonly name: string;
  readonly pins: Pins;
  readonly tree: Tree;
  readonly handlers: ReadonlySet<string>;
};

function loadRepository({ name, pins, tree, handlers }: Loading): RepositoryStatus {
  const differences = findDifferences(tree, pins).filter(({ repository }) => (repository ?? name) === name);
  const pinned = pins.get(name);
  if (pinned === undefined)
    differences.unshift({ repository: name, path: name, reason: "has no pins; run skillbroker pin" });
  if (pinned === undefined || differences.length > 0) {
    return { status: "refused", name, reasons: differences.map(formatDifference) };
  }
  const read = [...pinned].map(([directory, pin]) => readSkill({ repository: name, directory, pin, tree, handlers }));
  const reasons = [
    ...read.flatMap(({ problems }) => problems),
    ...findRefTwins(read.flatMap(({ skill }) => skill ?? [])),
  ];
  if (reasons.length > 0) return { status: "refused", name, reasons };
  const skills = read.flatMap(({ skill }) => skill ?? []).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return { status: "loaded", name, skills, digest: digestOfRepository(pinned) };
}

export type SkillSource = {
  readonly repository: string;
  readonly directory: string;
  readonly pin: SkillPin;
  readonly tree: Tree;
  readonly handlers: ReadonlySet<string>;
};
export type ReadSkill = { readonly skill?: Skill; readonly problems: readonly string[] };

/** Reads one skill whose bytes are known to fit `pin`. */
export function readSkill(source: SkillSource): ReadSkill {
  const prefix = `${source.repository}/${source.directory}/`;
  const contents = new Map(
    source.tree.files.flatMap(({ path, content }) =>
      path.startsWith(prefix) ? [[path.slice(prefix.length), content] as const] : [],
    ),
  );
  const markdown = readMarkdown(source.directory, prefix, contents);
  const callable = readCallable(prefix, contents, source.handlers);
  const problems = [...markdown.problems, ...callable.problems];
  if (markdown.manifest === undefined || problems.length > 0) return { problems };
  return { skill: makeSkill(source, markdown.manifest, callable.callable), problems: [] };
}

function readMarkdown(
  directory: string,
  prefix: string,
  contents: ReadonlyMap<string, Uint8Array>,
): { readonly manifest?: SkillManifest; readonly problems: readonly string[] } {
  const bytes = contents.get(SKILL_MD);
  if (bytes === undefined) {
    const twin = [...contents.keys()].find((path) => path.toLowerCase() === SKILL_MD.toLowerCase());
    const found = twin === undefined ? "" : `; ${prefix}${twin} is there, and upper and lower case differ`;
    return { problems: [`${prefix}${SKILL_MD} is missing${found}`] };
  }
  const parsed = parseSkillMarkdown(bytes, {
    directoryName: directory,
    file: `${prefix}${SKILL_MD}`,
    reading: "strict",
    maxBytes: MAX_SKILL_MD_BYTES,
  });
  return parsed.ok
    ? { manifest: parsed.manifest, problems: [] }
    : { problems: parsed.diagnostics.map(formatDiagnostic) };
}

function readCallable(
  prefix: string,
  contents: ReadonlyMap<string, Uint8Array>,
  handlers: ReadonlySet<string>,
): { readonly callable?: CallableSkill; readonly problems: readonly string[] } {
  const bytes = contents.get(TOOL_JSON);
  if (bytes === undefined) return { problems: [] };
  const parsed = parseToolJson(bytes, handlers);
  if (!parsed.ok) return { problems: parsed.problems.map((problem) => `${prefix}${TOOL_JSON}: ${problem}`) };
  const { templates: paths, ...definition } = parsed.definition;
  const templates = new Map<string, string>();
  const problems: string[] = [];
  for (const [name, path] of paths) {
    const content = contents.get(path);
    const text = content === undefined ? undefined : decodeUtf8(content);
    if (text !== undefined) templates.set(name, text);
    else problems.push(`${prefix}${TOOL_JSON}: /templates/${name}: ${path} is ${content ? "not UTF-8" : "missing"}`);
  }
  return problems.length > 0 ? { problems } : { callable: { ...definition, templates }, problems };
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

function repositoryNames(pins: Pins, tree: Tree): string[] {
  const present = tree.files.flatMap(({ path }) => (path.includes("/") ? [path.slice(0, path.indexOf("/"))] : []));
  return [...new Set([...pins.keys(), ...present])];
}

function directoryNames(root: string): string[] {
  try {
    return readdirSync(root, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    // The reason of the refusal already says that the directory cannot be read.
    return [];
  }
}

/** Never the error's own text: a system error holds an absolute path. */
function refusalReason(error: unknown): string {
  if (error instanceof SkillError) return error.message;
  if (error instanceof Error && "code" in error && typeof error.code === "string") {
    return `the skills directory cannot be read (${error.code})`;
  }
  throw error;
}
