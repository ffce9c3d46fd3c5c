import { sha256Hex } from "../contract/json.ts";
import { digestOfEntries } from "./digest.ts";
import { DIRECTORY_NAME, PINS_FILE, type Pins, type SkillPin } from "./pins.ts";
import type { Tree, TreeFile, TreeProblem } from "./tree.ts";
import { repositoryOf } from "./verify.ts";

/** The pins of a tree as it is now: repository -> skill -> digest and files. Files outside a skill are left out. */
export function pinsOf(tree: Tree): Pins {
  const repositories = new Map<string, Map<string, TreeFile[]>>();
  for (const file of tree.files) {
    const [repository, skill, ...rest] = file.path.split("/");
    if (repository === undefined || skill === undefined || rest.length === 0) continue;
    const skills = getOrAdd(repositories, repository, () => new Map<string, TreeFile[]>());
    getOrAdd(skills, skill, () => []).push({ path: rest.join("/"), content: file.content });
  }
  return new Map([...repositories].map(([name, skills]) => [name, new Map([...skills].map(toPin))]));
}

/** What pinning cannot cover, and why. */
export function findUnpinnable(tree: Tree): readonly TreeProblem[] {
  const strays = tree.files
    .map(({ path }) => path)
    .filter((path) => path !== PINS_FILE && path.split("/").length < 3)
    .map((path) => ({ path, reason: "belongs to no skill; move it into one or remove it" }));
  const names = new Set(tree.files.flatMap(({ path }) => repositoryOf(path) ?? []));
  const misnamed = [...names]
    .filter((name) => !DIRECTORY_NAME.test(name))
    .map((name) => ({ path: `${name}/`, reason: "is no name for a repository: a-z 0-9 - wanted, at most 64" }));
  return [...tree.problems, ...strays, ...misnamed];
}

function toPin([skill, files]: [string, readonly TreeFile[]]): [string, SkillPin] {
  const pins = files.map(({ path, content }) => ({ path, sha256: sha256Hex(content), size: content.length }));
  return [skill, { digest: digestOfEntries(files), files: pins }];
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const present = map.get(key);
  if (present !== undefined) return present;
  const made = make();
  map.set(key, made);
  return made;
}
