import { SkillError } from "../functions/contract/fault.ts";
import { SKILL_HANDLERS } from "../functions/handlers/table.ts";
import { loadRepositories } from "../functions/repository/load.ts";
import type { Pins } from "../functions/repository/pins.ts";
import { readPinsFile } from "../functions/repository/pins-file.ts";
import { readTree, type Tree } from "../functions/repository/tree.ts";

/**
 * The skills that are deployed: those that a cold start would load, checked by the very code that loads them. A
 * function that is deployed with a refused repository would serve without it; here the operator is still watching.
 */

export type VerifiedFile = { readonly path: string; readonly content: Uint8Array };
export type VerifiedSkills = {
  /** Pins of the wanted repositories alone: they are compiled into the function, which loads whatever is pinned. */
  readonly pins: Pins;
  /** Every pinned file and no other, by its path relative to the directory of the repositories. */
  readonly files: readonly VerifiedFile[];
};

export type SkillsSource = {
  /** Directory that holds the repositories beside `pins.json`. */
  readonly root: string;
  /** Names of the repositories wanted; undefined for all that are there. */
  readonly repositories?: readonly string[] | undefined;
};

/** Throws one `SkillError` that names every file that is not as pinned, and every other reason for a refusal. */
export function verifySkills({ root, repositories: wanted }: SkillsSource): VerifiedSkills {
  const pins = readPinsFile(root);
  const statuses = loadRepositories({ root, pins: () => pins, handlers: SKILL_HANDLERS, wanted });
  const reasons = statuses.flatMap((status) => (status.status === "refused" ? status.reasons : []));
  if (reasons.length > 0) {
    const lines = [...new Set(reasons)].map((reason) => `  ${reason}`).join("\n");
    throw new SkillError(`the skills in ${root} are not as they were pinned:\n${lines}`);
  }
  const loaded = new Set(statuses.map(({ name }) => name));
  const kept = new Map([...pins].filter(([name]) => loaded.has(name)));
  return { pins: kept, files: pickPinned(readTree(root), kept) };
}

function pickPinned(tree: Tree, pins: Pins): readonly VerifiedFile[] {
  const contents = new Map(tree.files.map(({ path, content }) => [path, content]));
  const paths = [...pins].flatMap(([repository, skills]) =>
    [...skills].flatMap(([skill, { files }]) => files.map(({ path }) => `${repository}/${skill}/${path}`)),
  );
  return paths.map((path) => {
    const content = contents.get(path);
    if (content === undefined) throw new SkillError(`${path} went missing while the skills were read`);
    return { path, content };
  });
}
