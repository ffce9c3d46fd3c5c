import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Fault } from "../../functions/contract/fault.ts";
import { findUnpinnable, pinsOf } from "../../functions/repository/pin.ts";
import { formatPins, PINS_FILE, type Pins } from "../../functions/repository/pins.ts";
import { readPinsFile } from "../../functions/repository/pins-file.ts";
import { formatDifference } from "../../functions/repository/verify.ts";
import { findRefusals, readTreeAt } from "./check-repositories.ts";
import { type Command, printJson } from "./command.ts";

type Change = { readonly skill: string; readonly change: "added" | "changed" | "removed"; readonly digest: string };

/** Writes the pins of what is on disk, once it would load. */
export const pin: Command = {
  name: "pin",
  usage: "[dir]",
  summary: "approve the skills as they are on disk: check them and write pins.json",
  details:
    "Nothing is written when a skill would be refused. Read the changes, then commit pins.json: it is the approval.",
  options: { "dry-run": { type: "boolean", help: "show what would change, write nothing" } },
  words: [0, 1],
  run: async (context) => {
    const [directory] = context.words;
    const root = directory === undefined ? context.project().skillsRoot : resolve(context.cwd, directory);
    const tree = readTreeAt(root);
    const pins = pinsOf(tree);
    const unpinnable = [...findUnpinnable(tree).map(formatDifference), ...(pins.size === 0 ? [NOTHING_TO_PIN] : [])];
    const refusals = [...new Set([...unpinnable, ...(await findRefusals(root, pins))])];
    const changes = findChanges(readPresent(root), pins);
    const ok = refusals.length === 0;
    if (ok && !context.flag("dry-run")) writePins(root, pins);
    if (context.json) printJson(context, { ok, changes, refusals });
    else {
      for (const refusal of refusals) context.print(`${refusal}\n`);
      for (const { skill, change, digest } of ok ? changes : [])
        context.print(`${change.padEnd(8)} ${skill}  ${digest}\n`);
      context.print(ok ? summary(changes, context.flag("dry-run")) : "nothing was pinned\n");
    }
    return ok ? 0 : 1;
  },
};

/** Most likely the wrong directory; writing an empty approval into it would look like success. */
const NOTHING_TO_PIN = "there is no skill; give the directory that holds one directory per repository";

/** The pins that are there; none when the file is missing or damaged, so that everything counts as added. */
function readPresent(root: string): Pins {
  try {
    return readPinsFile(root);
  } catch (error) {
    if (error instanceof Fault) return new Map();
    throw error;
  }
}

function findChanges(before: Pins, after: Pins): readonly Change[] {
  const old = flatten(before);
  const current = flatten(after);
  const kept = [...current].flatMap(([skill, digest]): Change[] => {
    const previous = old.get(skill);
    if (previous === digest) return [];
    return [{ skill, change: previous === undefined ? "added" : "changed", digest }];
  });
  const removed = [...old].filter(([skill]) => !current.has(skill));
  return [...kept, ...removed.map(([skill, digest]): Change => ({ skill, change: "removed", digest }))];
}

function flatten(pins: Pins): ReadonlyMap<string, string> {
  return new Map(
    [...pins].flatMap(([repository, skills]) =>
      [...skills].map(([name, { digest }]) => [`${repository}/${name}`, digest] as const),
    ),
  );
}

/** Through a second file that is flushed before it takes the name: a crash leaves the old pins or the new ones. */
function writePins(root: string, pins: Pins): void {
  const draft = join(root, `.${PINS_FILE}.${process.pid}`);
  try {
    writeFileSync(draft, formatPins(pins), { flush: true });
    renameSync(draft, join(root, PINS_FILE));
  } catch (error) {
    rmSync(draft, { force: true });
    throw new Fault("REPOSITORY_REFUSED", `${PINS_FILE} cannot be written; the old one is as it was`, { cause: error });
  }
}

function summary(changes: readonly Change[], dryRun: boolean): string {
  if (changes.length === 0) return "every skill was pinned already\n";
  return dryRun ? `${changes.length} skills would be pinned anew\n` : `${PINS_FILE} written; review it and commit it\n`;
}
