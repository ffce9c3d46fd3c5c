import { SkillExecutionError } from "../contract/fault.ts";
import type { Log } from "../contract/ports.ts";
import type { Skill } from "../contract/skill.ts";
import type { ToolRef } from "../contract/tool.ts";
import { SkillRefreshResult } from "./refresh-result.ts";
import { type Breach, SkillGraph, type SkillNode } from "./skill-graph.ts";

/** Named skills, and the flattened tool set of each: its own tool refs and those of every skill it includes. */

/** `via` leads from the resolved skill to the one that names the tool, both included. */
export type ToolUse = { readonly ref: string; readonly via: readonly string[] };
export type ToolSet = { readonly uses: readonly ToolUse[]; readonly problems: readonly string[] };

/**
 * What is known of a ref now. `unknown`: whoever lends the tool could not be asked. `changed`: its definition is not
 * the approved one.
 */
export type ToolState =
  /** `ref` is the exact one, where the name leaves the version out. */
  | { readonly state: "present"; readonly ref?: ToolRef | undefined }
  | { readonly state: "absent" | "unknown" }
  | { readonly state: "changed"; readonly approved: string; readonly offered: string };
export type ToolLookup = (ref: string) => ToolState;

export type SkillRegistryOptions = {
  readonly skills: readonly Skill[];
  /** Undefined when there is no tool registry to look refs up in: every resolved skill then counts as refreshed. */
  readonly lookup?: ToolLookup | undefined;
  readonly log: Log;
};

/** Longest path that is told whole; of a longer one the beginning and the end. */
const MAX_TOLD_PATH = 12;

export class SkillRegistry {
  readonly #skills: ReadonlyMap<string, Skill>;
  readonly #graph: SkillGraph;
  readonly #lookup: ToolLookup | undefined;
  readonly #log: Log;

  constructor({ skills, lookup, log }: SkillRegistryOptions, graph = new SkillGraph(skills.map(toNode))) {
    this.#skills = new Map(skills.map((skill) => [skill.name, skill]));
    this.#graph = graph;
    this.#lookup = lookup;
    this.#log = log;
  }

  /** The same skills looked up elsewhere. Nothing is flattened anew, since that depends on the skills alone. */
  withLookup(lookup: ToolLookup): SkillRegistry {
    return new SkillRegistry({ skills: [...this.#skills.values()], lookup, log: this.#log }, this.#graph);
  }

  /** In the order of their names. */
  list(): readonly Skill[] {
    return this.#graph.names.flatMap((name) => this.#skills.get(name) ?? []);
  }

  /** Throws `SkillExecutionError` (`SKILL_NOT_FOUND`) for an unknown name. */
  get(name: string): Skill {
    const skill = this.#skills.get(name);
    if (skill === undefined) throw new SkillExecutionError("SKILL_NOT_FOUND", `no skill is called "${name}"`);
    return skill;
  }

  /**
   * The flattened tool set, each ref once, sorted, by the shortest way in. `problems` names the include that is not
   * there (`b → ghost`) or leads back (`x → a → x`) by its path. Throws `SKILL_NOT_FOUND` for an unknown name.
   */
  resolve(name: string): ToolSet {
    const id = this.#idOf(name);
    const uses = this.#graph
      .refIdsOf(id)
      .map((ref) => ({ ref: this.#graph.refs[ref] ?? "", via: this.#graph.wayTo(id, ref) }));
    const breach = this.#graph.breachOf(id);
    return { uses, problems: breach === undefined ? [] : [toPath(breach.path)] };
  }

  /** Recomputes one skill's tool set against what is there now. Throws `SKILL_NOT_FOUND` for an unknown name. */
  refresh(name: string): SkillRefreshResult {
    return this.#refresh([this.#idOf(name)]);
  }

  /** Recomputes every skill's. Skills are flattened once for all; only the tools are looked up anew, each once. */
  refreshAll(): SkillRefreshResult {
    return this.#refresh(this.#graph.names.map((_, id) => id));
  }

  #refresh(ids: readonly number[]): SkillRefreshResult {
    const lookup = this.#lookup;
    if (lookup === undefined) {
      this.#log("warn", "skills are refreshed without looking their tools up: give the skill registry a lookup");
    }
    const states = this.#graph.refs.map((ref): ToolState | undefined => lookup?.(ref));
    const stateOf = new Map(this.#graph.refs.map((ref, id) => [ref, states[id]?.state]));
    const broken = this.#graph.maskOf((ref) => stateOf.get(ref) === "absent" || stateOf.get(ref) === "changed");
    const unknown = this.#graph.maskOf((ref) => stateOf.get(ref) === "unknown");
    const refreshed: string[] = [];
    const failed = new Map<string, string>();
    const skipped: string[] = [];
    for (const id of ids) {
      const name = this.#graph.names[id] ?? "";
      const breach = this.#graph.breachOf(id);
      if (breach !== undefined) failed.set(name, toBreachMessage(breach));
      else if (this.#graph.meets(id, broken)) failed.set(name, this.#toToolMessage(id, states));
      else if (this.#graph.meets(id, unknown)) skipped.push(name);
      else refreshed.push(name);
    }
    return new SkillRefreshResult({ refreshed, failed, skipped });
  }

  /** Every ref that is missing or changed, sorted, with its way in. */
  #toToolMessage(id: number, states: readonly (ToolState | undefined)[]): string {
    const missing: string[] = [];
    const changed: string[] = [];
    for (const ref of this.#graph.refIdsOf(id)) {
      const state = states[ref];
      if (state === undefined) continue;
      const where = `${toPath(this.#graph.wayTo(id, ref))}: ${this.#graph.refs[ref]}`;
      if (state.state === "absent") missing.push(where);
      if (state.state === "changed") changed.push(`${where} (approved ${state.approved}, offered ${state.offered})`);
    }
    const parts = [
      ...(missing.length > 0 ? [`missing tools: ${missing.join(", ")}`] : []),
      ...(changed.length > 0 ? [`changed tools: ${changed.join(", ")}`] : []),
    ];
    return parts.join("; ");
  }

  #idOf(name: string): number {
    const id = this.#graph.idOf(name);
    if (id === undefined) throw new SkillExecutionError("SKILL_NOT_FOUND", `no skill is called "${name}"`);
    return id;
  }
}

/** A callable skill's own tool belongs to its tool set, so that who includes the skill may call it. */
function toNode({ name, includes, toolRefs, callable }: Skill): SkillNode {
  return { name, includes, toolRefs: callable === undefined ? toolRefs : [callable.ref, ...toolRefs] };
}

function toBreachMessage({ kind, path }: Breach): string {
  return `${kind === "cycle" ? "the includes lead in a circle" : "an include is missing"}: ${toPath(path)}`;
}

function toPath(names: readonly string[]): string {
  if (names.length <= MAX_TOLD_PATH) return names.join(" → ");
  const half = MAX_TOLD_PATH / 2;
  const left = names.length - MAX_TOLD_PATH;
  return [...names.slice(0, half), `… ${left} more …`, ...names.slice(-half)].join(" → ");
}
