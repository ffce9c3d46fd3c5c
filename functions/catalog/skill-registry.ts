import { SkillExecutionError } from "../contract/fault.ts";
import type { Skill } from "../contract/skill.ts";

/** Named skills, and the flattened tool set of each: its own tool refs and those of every skill it includes. */

/** `via` leads from the resolved skill to the one that names the tool, both included. */
export type ToolUse = { readonly ref: string; readonly via: readonly string[] };
export type ToolSet = { readonly uses: readonly ToolUse[]; readonly problems: readonly string[] };

export class SkillRegistry {
  readonly #skills: ReadonlyMap<string, Skill>;

  constructor(skills: readonly Skill[]) {
    this.#skills = new Map(skills.map((skill) => [skill.name, skill]));
  }

  /** In the order of their names. */
  list(): readonly Skill[] {
    return [...this.#skills.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Throws `SkillExecutionError` (`SKILL_NOT_FOUND`) for an unknown name. */
  get(name: string): Skill {
    const skill = this.#skills.get(name);
    if (skill === undefined) throw new SkillExecutionError("SKILL_NOT_FOUND", `no skill is called "${name}"`);
    return skill;
  }

  /**
   * The flattened tool set, each ref once, by the shortest way in. Problems name a cycle (`x → a → x`) or a missing
   * include (`b → ghost`) by its path. Throws `SKILL_NOT_FOUND` for an unknown name.
   */
  resolve(name: string): ToolSet {
    const uses = new Map<string, ToolUse>();
    const problems: string[] = [];
    const seen = new Set([name]);
    const pending = [[this.get(name).name]];
    for (let via = pending.shift(); via !== undefined; via = pending.shift()) {
      const skill = this.get(via.at(-1) ?? name);
      for (const ref of skill.toolRefs) if (!uses.has(ref)) uses.set(ref, { ref, via });
      for (const include of new Set(skill.includes)) {
        const path = [...via, include];
        if (via.includes(include) || !this.#skills.has(include)) problems.push(path.join(" → "));
        else if (!seen.has(include)) {
          seen.add(include);
          pending.push(path);
        }
      }
    }
    const sorted = [...uses.values()].sort((a, b) => (a.ref < b.ref ? -1 : 1));
    return { uses: sorted, problems: problems.sort() };
  }
}
