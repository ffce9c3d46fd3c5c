import * as z from "zod";
import { BUNDLED_SPECS } from "../functions/catalog/bundled-tools.ts";
import { SkillError } from "../functions/contract/fault.ts";
import { sha256Hex } from "../functions/contract/json.ts";
import { SKILL_HANDLERS } from "../functions/handlers/table.ts";
import { type LoadedRepository, loadRepositories } from "../functions/repository/load.ts";
import type { Pins } from "../functions/repository/pins.ts";
import { readPinsFile } from "../functions/repository/pins-file.ts";
import { TOOL_JSON } from "../functions/repository/skill-files.ts";
import { readTree, type Tree } from "../functions/repository/tree.ts";

/**
 * The skills that are deployed: those that a cold start would load, checked by the very code that loads them. A
 * function that is deployed with a refused repository would serve without it; here the operator is still watching.
 */

export type VerifiedFile = { readonly path: string; readonly content: Uint8Array };
export type VerifiedSkills = {
  /** Pins of the wanted repositories alone: the function loads whatever is pinned. */
  readonly pins: Pins;
  /** Every pinned file and no other, by its path relative to the directory of the repositories. */
  readonly files: readonly VerifiedFile[];
};

export type SkillsSource = {
  /** Directories that hold repositories beside `pins.json`, as the operator wrote them. */
  readonly roots: readonly string[];
  /** Names of the repositories wanted; undefined for all that are there. */
  readonly repositories?: readonly string[] | undefined;
};

export type FoundSkills = VerifiedSkills & {
  /** Names of the wanted repositories, refused ones too. */
  readonly names: readonly string[];
  /** What can be called beside tools of MCP servers, in ascending order; of refused repositories, what they say. */
  readonly refs: readonly string[];
  /** Every reason for a refusal, once, each with the directory that it is about. */
  readonly problems: readonly string[];
};

/** Throws one `SkillError` that names every file that is not as pinned, and every other reason for a refusal. */
export function verifySkills(source: SkillsSource): VerifiedSkills {
  const { problems, pins, files } = findSkills(source);
  if (problems.length === 0) return { pins, files };
  throw new SkillError(`the skills are not as they were pinned:\n${problems.map((each) => `  ${each}`).join("\n")}`);
}

/** The skills of all the directories, and everything that is wrong with them. */
export function findSkills({ roots, repositories: wanted }: SkillsSource): FoundSkills {
  const found = roots.map((root) => findIn(root, wanted));
  const names = found.flatMap((each) => each.names);
  const problems = [
    ...found.flatMap((each) => each.problems.map((problem) => `${each.root}: ${problem}`)),
    ...findTwins(found),
    ...findRefTwins(found.flatMap(({ loaded }) => loaded)),
    ...(wanted ?? []).filter((name) => !names.includes(name)).map((name) => missing(name, roots)),
  ];
  return {
    names,
    refs: [...new Set([...BUNDLED_REFS, ...found.flatMap(({ refs }) => refs)])].toSorted(),
    problems: [...new Set(problems)],
    pins: new Map(found.flatMap(({ pins }) => [...pins])),
    files: found.flatMap(({ files }) => files),
  };
}

const BUNDLED_REFS: readonly string[] = BUNDLED_SPECS.map(({ ref }) => ref);
/** By what name the whole of a directory is refused whose repositories cannot even be named. */
const ALL_REPOSITORIES = "*";

type FoundIn = FoundSkills & { readonly root: string; readonly loaded: readonly LoadedRepository[] };

function findIn(root: string, wanted: readonly string[] | undefined): FoundIn {
  const pins = attempt(() => readPinsFile(root)) ?? new Map();
  const tree = attempt(() => readTree(root)) ?? { files: [], problems: [] };
  // Read anew, so that what cannot be read is told in the words of a cold start.
  const statuses = loadRepositories({ root, pins: () => readPinsFile(root), handlers: SKILL_HANDLERS });
  const asked = statuses.filter(
    ({ name }) => wanted === undefined || name === ALL_REPOSITORIES || wanted.includes(name),
  );
  const loaded = asked.filter((status) => status.status === "loaded");
  const names = asked.map(({ name }) => name).filter((name) => name !== ALL_REPOSITORIES);
  const kept: Pins = new Map([...pins].filter(([name]) => loaded.some((each) => each.name === name)));
  const problems = asked.flatMap((status) => (status.status === "refused" ? status.reasons : []));
  return { root, names, loaded, refs: namedIn(tree, names), problems, pins: kept, files: pickPinned(tree, kept) };
}

/** Why it cannot be read, loading says. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/**
 * The files to be deployed. Throws a `SkillError` that names one which is not as it was when the skills were loaded.
 */
export function pickPinned(tree: Tree, pins: Pins): readonly VerifiedFile[] {
  const contents = new Map(tree.files.map(({ path, content }) => [path, content]));
  const pinned = [...pins].flatMap(([repository, skills]) =>
    [...skills].flatMap(([skill, { files }]) =>
      files.map(({ path, sha256 }) => ({ path: `${repository}/${skill}/${path}`, sha256 })),
    ),
  );
  return pinned.map(({ path, sha256 }) => {
    const content = contents.get(path);
    // Loading has read them for itself: these here are deployed.
    if (content !== undefined && sha256Hex(content) === sha256) return { path, content };
    throw new SkillError(`${path} was changed while the skills were read; run the synth again`);
  });
}

/**
 * What the callable skills are called, without a look at anything else in them: that a repository is refused says
 * nothing about an approval of what is in it.
 */
function namedIn(tree: Tree, repositories: readonly string[]): readonly string[] {
  return tree.files.flatMap(({ path, content }) => {
    const [repository = "", , file, ...deeper] = path.split("/");
    if (file !== TOOL_JSON || deeper.length > 0 || !repositories.includes(repository)) return [];
    const named = Named.safeParse(attempt(() => JSON.parse(Buffer.from(content).toString())));
    return named.success ? [`${named.data.id}@${named.data.version}`] : [];
  });
}

const Named = z.object({ id: z.string(), version: z.string() });

/** Their skills would have the same names, so that neither a caller nor an approval could tell them apart. */
function findTwins(found: readonly FoundIn[]): readonly string[] {
  const roots = new Map<string, string>();
  return found.flatMap(({ root, names }) =>
    names.flatMap((name) => {
      const other = roots.get(name);
      roots.set(name, root);
      return other === undefined ? [] : [`${root}: ${name}/ is also in ${other}; a name stands for one repository`];
    }),
  );
}

/** Two skills under one ref would be approved together; within one repository, loading has refused them. */
function findRefTwins(repositories: readonly LoadedRepository[]): readonly string[] {
  const owners = new Map<string, string>(BUNDLED_REFS.map((ref) => [ref, "a tool of skillbroker's own"]));
  return repositories.flatMap(({ skills }) =>
    skills.flatMap(({ name, callable }) => {
      if (callable === undefined) return [];
      const other = owners.get(callable.ref);
      owners.set(callable.ref, name);
      return other === undefined ? [] : [`${name}/${TOOL_JSON}: ${callable.ref} is already the ref of ${other}`];
    }),
  );
}

function missing(name: string, roots: readonly string[]): string {
  return `${name}/ is wanted and not in ${roots.join(" or ")}`;
}
