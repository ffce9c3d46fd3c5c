import * as fc from "fast-check";
import { expect, test } from "vitest";
import { toServedTools } from "../../../functions/catalog/served-tools.ts";
import { SkillRegistry, type ToolLookup } from "../../../functions/catalog/skill-registry.ts";
import type { Skill } from "../../../functions/contract/skill.ts";
import { ToolRef } from "../../../functions/contract/tool.ts";
import { load, pinnedRoot } from "../repository/skills-on-disk.ts";
import { instructions, silent } from "./catalogs.ts";

const files = {
  ...instructions("acme/one", { includes: ["two"], tools: ["s1/a", "t1@1"] }),
  ...instructions("acme/two", { tools: ["s1/b"] }),
  ...instructions("acme/loop", { includes: ["loop"], tools: ["t1@1"] }),
};

/** What is known of each name at one moment: absent, unknown, or present in one of two definitions. */
const stateArbitrary = fc.constantFrom("absent", "unknown", "first", "second");
const worldArbitrary = fc.record({ "s1/a": stateArbitrary, "s1/b": stateArbitrary, "t1@1": stateArbitrary });
type World = { readonly "s1/a": string; readonly "s1/b": string; readonly "t1@1": string };

const exact = (name: string, definition: string) =>
  ToolRef.parse(name.includes("/") ? `${name}@${(definition === "first" ? "1" : "2").repeat(12)}` : name);

function lookupIn(world: World): ToolLookup {
  const states = new Map(Object.entries(world));
  return (text) => {
    const name = text.includes("/") ? (text.split("@")[0] ?? text) : text;
    const state = states.get(name) ?? "absent";
    if (state === "absent" || state === "unknown") return { state };
    const ref = exact(name, state);
    const another = text !== name && text !== ref;
    return another ? { state: "changed", approved: text, offered: ref } : { state: "present", ref };
  };
}

function serve(skills: readonly Skill[], world: World, previous: ReturnType<typeof toServedTools>) {
  const lookup = lookupIn(world);
  const registry = new SkillRegistry({ skills, lookup, log: silent });
  const result = registry.refreshAll();
  return { result, served: toServedTools({ skills: registry, lookup, result, previous }) };
}

test("through any course of lists, a whole set is served whole, a failed one gains nothing, a skipped one keeps its own", () => {
  const skills = load(pinnedRoot(files)).flatMap((each) => (each.status === "loaded" ? each.skills : []));
  fc.assert(
    fc.property(fc.array(worldArbitrary, { minLength: 1, maxLength: 8 }), (worlds) => {
      let previous: ReturnType<typeof toServedTools> = new Map();
      for (const world of worlds) {
        const { result, served } = serve(skills, world, previous);
        const offered = Object.entries(world).filter(([, state]) => state === "first" || state === "second");
        const present: ReadonlySet<string> = new Set(offered.map(([name, state]) => exact(name, state)));
        const unknown = Object.entries(world).flatMap(([name, state]) => (state === "unknown" ? [name] : []));
        const mayBeThere = (ref: string) =>
          present.has(ref) || unknown.some((name) => ref === name || ref.startsWith(`${name}@`));
        for (const [name, refs] of served) {
          const before = previous.get(name) ?? [];
          if (result.skipped.includes(name)) expect(refs).toEqual(before);
          if (result.failed.has(name)) expect(refs).toEqual(before.filter(mayBeThere));
        }
        if (result.refreshed.includes("acme/one")) expect(served.get("acme/one")).toEqual([...present].toSorted());
        expect(served.get("acme/loop")).toEqual([]);
        // A catalog that is made again of its own record must not differ from it.
        expect(serve(skills, world, served).served).toEqual(served);
        previous = served;
      }
    }),
    { numRuns: 500 },
  );
});
