import { describe, expect, test } from "vitest";
import { SkillGraph, type SkillNode } from "../../../functions/catalog/skill-graph.ts";

const chainOf = (length: number, end: Partial<SkillNode>): SkillNode[] =>
  Array.from({ length }, (_, index) => ({
    name: `s/${index}`,
    includes: index === length - 1 ? [] : [`s/${index + 1}`],
    toolRefs: [],
    ...(index === length - 1 ? end : {}),
  }));

describe("a chain of 100,000 includes", () => {
  test("is flattened to its end", () => {
    const graph = new SkillGraph(chainOf(100_000, { toolRefs: ["t@1"] }));
    const first = graph.idOf("s/0") ?? -1;
    expect(graph.refIdsOf(first)).toEqual([0]);
    expect(graph.wayTo(first, 0)).toHaveLength(100_000);
  });

  test("that leads back or nowhere is told by its path", () => {
    const back = new SkillGraph(chainOf(100_000, { includes: ["s/0"] }));
    expect(back.breachOf(back.idOf("s/5") ?? -1)).toMatchObject({ kind: "cycle", path: { length: 100_001 } });
    const nowhere = new SkillGraph(chainOf(100_000, { includes: ["ghost"] }));
    expect(nowhere.breachOf(nowhere.idOf("s/0") ?? -1)?.path.at(-1)).toBe("ghost");
  });
});

test("refs beyond the first word have a bit of their own", () => {
  const toolRefs = Array.from({ length: 100 }, (_, index) => `t${String(index).padStart(3, "0")}@1`);
  const graph = new SkillGraph([
    { name: "s/a", includes: ["s/b"], toolRefs: toolRefs.filter((_, index) => index % 2 === 0) },
    { name: "s/b", includes: [], toolRefs: toolRefs.filter((_, index) => index % 3 === 0) },
  ]);
  const wanted = toolRefs.filter((_, index) => index % 2 === 0 || index % 3 === 0);
  expect(graph.refIdsOf(0).map((id) => graph.refs[id])).toEqual(wanted);
  for (const ref of toolRefs) {
    expect(
      graph.meets(
        0,
        graph.maskOf((each) => each === ref),
      ),
    ).toBe(wanted.includes(ref));
  }
});
