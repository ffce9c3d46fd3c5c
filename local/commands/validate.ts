import { existsSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { Fault } from "../../functions/contract/fault.ts";
import { MAX_SKILL_MD_BYTES } from "../../functions/repository/load.ts";
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
    const path = join(directory, "SKILL.md");
    if (!existsSync(path)) throw new Fault("REPOSITORY_REFUSED", `${path} is missing; give the directory of a skill`);
    const directoryName = basename(directory);
    const parsed = parseSkillMarkdown(readFileSync(path), {
      directoryName,
      file: `${directoryName}/SKILL.md`,
      reading: context.flag("lenient") ? "lenient" : "strict",
      maxBytes: MAX_SKILL_MD_BYTES,
    });
    if (context.json) printJson(context, { ok: parsed.ok, diagnostics: parsed.diagnostics });
    else {
      for (const diagnostic of parsed.diagnostics)
        context.print(`${diagnostic.severity} ${formatDiagnostic(diagnostic)}\n`);
      context.print(parsed.ok ? `${directoryName} is a valid skill\n` : `${directoryName} is refused\n`);
    }
    return parsed.ok ? 0 : 1;
  },
};
