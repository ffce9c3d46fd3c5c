import { createHash } from "node:crypto";
import { SkillGraph, type SkillNode } from "../functions/catalog/skill-graph.ts";
import { measureRatio } from "./ratio.ts";

/** 10,000 skills with 5 includes and 10 of 1,000 refs each, over a SHA-256 of one MiB. */

const SKILLS = 10_000;
const REFS = 1_000;
const mebibyte = Buffer.alloc(1024 * 1024, "skillbroker");

/** The same graph in every run: a linear congruential generator (Numerical Recipes). */
function createRandom(): (below: number) => number {
  let state = 1;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % below;
  };
}

function randomSkills(): readonly SkillNode[] {
  const random = createRandom();
  return Array.from({ length: SKILLS }, (_, id) => ({
    name: `s/${id}`,
    includes: id === 0 ? [] : Array.from({ length: 5 }, () => `s/${random(id)}`),
    toolRefs: Array.from({ length: 10 }, () => `t${random(REFS)}@1`),
  }));
}

const skills = randomSkills();
const hash = () => createHash("sha256").update(mebibyte).digest("hex");
const graph = new SkillGraph(skills);
const validate = () => {
  const gone = graph.maskOf((ref) => ref === "t7@1");
  return graph.names.filter((_, id) => graph.meets(id, gone)).length;
};
const build = measureRatio(() => new SkillGraph(skills), hash, { rounds: 9, repeats: 1 });
const again = measureRatio(validate, hash, { rounds: 25, repeats: 5 });
console.log(`${build.toFixed(2).padStart(8)}x  flatten ${SKILLS} skills / SHA-256 of 1 MiB`);
console.log(`${again.toFixed(2).padStart(8)}x  look at all of them after a list of tools changed / the same`);
