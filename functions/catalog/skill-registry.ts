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
    const { ways, problems } = this.#explore(this.get(name).name);
    for (const [reached, via] of ways) {
      for (const ref of this.get(reached).toolRefs) if (!uses.has(ref)) uses.set(ref, { ref, via });
    }
    const sorted = [...uses.values()].sort((a, b) => (a.ref < b.ref ? -1 : 1));
    return { uses: sorted, problems: [...problems, ...this.#findCycles(name)].sort() };
  }

  /** Every skill that is reached, with the shortest way to it, breadth first; and the includes that lead nowhere. */
  #explore(name: string): { readonly ways: ReadonlyMap<string, readonly string[]>; readonly problems: string[] } {
    const ways = new Map<string, readonly string[]>([[name, [name]]]);
    const problems: string[] = [];
    for (const [reached, via] of ways) {
      for (const include of new Set(this.get(reached).includes)) {
        if (!this.#skills.has(include)) problems.push([...via, include].join(" → "));
        else if (!ways.has(include)) ways.set(include, [...via, include]);
      }
    }
    return { ways, problems };
  }

  /**
   * Depth first, since the shortest ways do not show every cycle: of x → a, x → b, a → b and b → a neither way holds
   * both. With a stack of its own, because a chain of 100,000 includes overflows recursion.
   */
  #findCycles(name: string): string[] {
    const cycles: string[] = [];
    const done = new Set<string>();
    const path = new Map([[name, this.#knownIncludes(name)]]);
    for (let last = name; path.size > 0; last = [...path.keys()].at(-1) ?? name) {
      const include = path.get(last)?.pop();
      if (include === undefined) {
        path.delete(last);
        done.add(last);
      } else if (path.has(include)) cycles.push([...path.keys(), include].join(" → "));
      else if (!done.has(include)) path.set(include, this.#knownIncludes(include));
    }
    return cycles;
  }

  /** Last first, to be popped in the order in which they are written. */
  #knownIncludes(name: string): string[] {
    return [...new Set(this.get(name).includes)].filter((include) => this.#skills.has(include)).reverse();
  }
}
