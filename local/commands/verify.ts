import { resolve } from "node:path";
import { readPinsFile } from "../../functions/repository/pins-file.ts";
import { findDifferences, formatDifference } from "../../functions/repository/verify.ts";
import { findRefusals, readTreeAt } from "./check-repositories.ts";
import { type Command, printJson } from "./command.ts";

/** Compares a directory of repositories with its pins. */
export const verify: Command = {
  name: "verify",
  usage: "[dir]",
  summary: "compare the skills on disk with their pins and list every difference",
  details: "The directory holds one directory per repository, beside pins.json; the project's own when left out.",
  options: {},
  words: [0, 1],
  run: async (context) => {
    const [directory] = context.words;
    const root = directory === undefined ? context.project().skillsRoot : resolve(context.cwd, directory);
    const tree = readTreeAt(root);
    const pins = readPinsFile(root);
    const differences = findDifferences(tree, pins).map(({ path, reason }) => ({ path, reason }));
    const refusals = differences.length > 0 ? [] : await findRefusals(root, pins);
    const ok = differences.length === 0 && refusals.length === 0;
    if (context.json) printJson(context, { ok, files: tree.files.length, differences, refusals });
    else {
      for (const difference of differences) context.print(`${formatDifference(difference)}\n`);
      for (const refusal of refusals) context.print(`${refusal}\n`);
      context.print(
        ok
          ? `${tree.files.length} files are as pinned\n`
          : `refused: ${differences.length + refusals.length} differences\n`,
      );
    }
    return ok ? 0 : 1;
  },
};
