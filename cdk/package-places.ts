import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Where things are in the package of skillbroker, whether this runs from its sources or from what was built of them.
 */

/** Directory of `package.json`. */
export const PACKAGE_ROOT = findPackageRoot(import.meta.dirname);

/** The skills that come with skillbroker: a directory that holds the repository `builtin` beside its `pins.json`. */
export const BUILTIN_SKILLS = join(PACKAGE_ROOT, "skills");

/** The code of the functions, once it is built. */
export const BUILT_CODE = join(PACKAGE_ROOT, "dist", "functions-code");

function findPackageRoot(directory: string): string {
  if (existsSync(join(directory, "package.json")) || dirname(directory) === directory) return directory;
  return findPackageRoot(dirname(directory));
}
