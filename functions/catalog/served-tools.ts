import { parseToolRef, type ToolRef } from "../contract/tool.ts";
import type { SkillRefreshResult } from "./refresh-result.ts";
import type { SkillRegistry, ToolLookup } from "./skill-registry.ts";

/** Skill -> the exact refs that a job gets by naming the skill. */
export type ServedTools = ReadonlyMap<string, readonly ToolRef[]>;

export type ServedSource = {
  readonly skills: SkillRegistry;
  readonly lookup: ToolLookup;
  readonly result: SkillRefreshResult;
  /** What was served before; empty when nothing was. */
  readonly previous: ServedTools;
};

/**
 * A skill whose set is whole serves all of it. One that could not be looked up keeps what it served. One that failed
 * keeps of it what is still there unchanged, and gains nothing: half a set is no reason for new capabilities. Doing it
 * again with its own answer as `previous` changes nothing.
 */
export function toServedTools({ skills, lookup, result, previous }: ServedSource): ServedTools {
  const refreshed = new Set(result.refreshed);
  return new Map(
    skills.list().map(({ name }) => {
      const uses = skills.resolve(name).uses.map(({ ref }) => ref);
      if (refreshed.has(name)) return [name, uses.flatMap((ref) => toExact(ref, lookup))];
      const before = previous.get(name) ?? [];
      const named = new Set(uses);
      const kept = before.filter((ref) => named.has(ref) || named.has(withoutVersion(ref)));
      return [name, result.failed.has(name) ? kept.filter((ref) => mayBeThere(ref, lookup)) : kept];
    }),
  );
}

/** Not known to be gone or changed; a tool whose server could not be asked is neither. */
function mayBeThere(ref: ToolRef, lookup: ToolLookup): boolean {
  const { state } = lookup(ref);
  return state === "present" || state === "unknown";
}

function toExact(ref: string, lookup: ToolLookup): readonly ToolRef[] {
  const found = lookup(ref);
  if (found.state !== "present") return [];
  const exact = found.ref ?? parseToolRef(ref);
  return exact === undefined ? [] : [exact];
}

function withoutVersion(ref: ToolRef): string {
  return ref.slice(0, ref.lastIndexOf("@"));
}
