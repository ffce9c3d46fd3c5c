import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** What is in a directory that is deployed: path in it -> text. */
export type Files = ReadonlyMap<string, string>;

/** Every file below a directory. */
export function readFiles(directory: string): Files {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name)).sort();
  return new Map(paths.map((path) => [path.slice(directory.length + 1), readFileSync(path, "utf8")]));
}

export function skillsIn(files: Files): Files {
  return new Map([...files].filter(([path]) => path.startsWith("skills/")));
}

/** The code of all its files as one text. */
export function codeIn(files: Files): string {
  return [...files].flatMap(([path, text]) => (path.startsWith("skills/") ? [] : text)).join("\n");
}
