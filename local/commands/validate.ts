import { type Dirent, readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { Fault } from "../../functions/contract/fault.ts";
import { MAX_SKILL_MD_BYTES, SKILL_MD, twinHint } from "../../functions/repository/skill-files.ts";
import { formatDiagnostic, parseSkillMarkdown } from "../../functions/repository/skill-md.ts";
import { type Command, printJson } from "./command.ts";

/** Reads one skill's SKILL.md and says what the specification says about it. */
export const validate: Command = {
  name: "validate",
  usage: "<dir>",
  summary: "check a skill's SKILL.md against the Agent Skills specification",
  details: "Strictly, as a pinned repository is read; with --lenient, as skills of others are.",
  options: { lenient: { type: "boolean", help: "accept what is unambiguous, and warn" } },
  words: [1, 1],
  run: async (context) => {
    const directory = resolve(context.cwd, context.words[0] ?? ".");
    const directoryName = basename(directory);
    const parsed = parseSkillMarkdown(readSkillMarkdown(directory), {
      directoryName,
      file: `${directoryName}/${SKILL_MD}`,
      reading: context.flag("lenient") ? "lenient" : "strict",
      maxBytes: MAX_SKILL_MD_BYTES,
    });
    if (context.json) printJson(context, { ok: parsed.ok, diagnostics: parsed.diagnostics });
    else {
      for (const diagnostic of parsed.diagnostics)
        context.print(`${diagnostic.severity} ${formatDiagnostic(diagnostic)}\n`);
      context.print(parsed.ok ? `${directoryName}/SKILL.md is valid\n` : `${directoryName} is refused\n`);
    }
    return parsed.ok ? 0 : 1;
  },
};

/** By the directory's own listing: macOS and Windows would open `SKILL.MD` by the name `SKILL.md`. */
function readSkillMarkdown(directory: string): Uint8Array {
  const path = join(directory, SKILL_MD);
  const entries = listDirectory(directory);
  const entry = entries.find(({ name }) => name === SKILL_MD);
  if (entry?.isFile()) return readFileSync(path);
  const names = entries.map(({ name }) => name);
  const reason = entry === undefined ? `is missing${twinHint(SKILL_MD, names)}` : "is not a regular file";
  throw new Fault("REPOSITORY_REFUSED", `${path} ${reason}; give the directory of a skill`);
}

function listDirectory(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    throw new Fault("REPOSITORY_REFUSED", `${directory} cannot be read; give the directory of a skill`, {
      cause: error,
    });
  }
}
