import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SkillRefreshResult } from "../../../functions/catalog/refresh-result.ts";

type Lists = { refreshed: string[]; failed: [string, string][]; skipped: string[] };

/** A result in which each name is in one list, as a refresh gives it. */
const result = fc
  .uniqueArray(fc.tuple(fc.constantFrom(..."abcdefgh"), fc.constantFrom("refreshed", "failed", "skipped")), {
    selector: ([name]) => name,
  })
  .map((entries) => {
    const named = (list: string) => entries.filter(([, each]) => each === list).map(([name]) => name);
    const failed = new Map(named("failed").map((name) => [name, `${name} failed`]));
    return new SkillRefreshResult({ refreshed: named("refreshed"), failed, skipped: named("skipped") });
  });

const listsOf = ({ refreshed, failed, skipped }: SkillRefreshResult): Lists => ({
  refreshed: [...refreshed],
  failed: [...failed],
  skipped: [...skipped],
});
const namesOf = ({ refreshed, failed, skipped }: SkillRefreshResult) => [...refreshed, ...failed.keys(), ...skipped];
const EMPTY = new SkillRefreshResult({});

describe("a result", () => {
  test("counts its lists and says so in one line", () => {
    const given = new SkillRefreshResult({ refreshed: ["a", "b", "c"], failed: new Map([["d", "x"]]) });
    expect([given.totalRefreshed, given.totalFailed, given.totalSkipped]).toEqual([3, 1, 0]);
    expect(given.toSummary()).toBe("refreshed: 3, failed: 1, skipped: 0");
  });

  test("does not change when somebody writes into what it hands out", () => {
    const result = new SkillRefreshResult({ refreshed: ["a"], failed: new Map([["b", "why"]]), skipped: ["c"] });
    const handed = result.failed;
    if (handed instanceof Map) handed.set("x", "y").delete("b");
    for (const list of [result.refreshed, result.skipped]) expect(() => Object.assign(list, { 1: "x" })).toThrow();
    expect(() => Object.assign(result, { skipped: [] })).toThrow();
    expect(result.toSummary()).toBe("refreshed: 1, failed: 1, skipped: 1");
    expect([...result.failed]).toEqual([["b", "why"]]);
  });

  test("does not change with what it was made of", () => {
    const refreshed = ["a"];
    const failed = new Map([["b", "x"]]);
    const given = new SkillRefreshResult({ refreshed, failed });
    refreshed.push("c");
    failed.set("d", "y");
    expect(listsOf(given)).toEqual({ refreshed: ["a"], failed: [["b", "x"]], skipped: [] });
  });
});

describe("merging", () => {
  test("concatenates, and combines the failures", () => {
    const first = new SkillRefreshResult({ refreshed: ["ns/skill-a"] });
    const second = new SkillRefreshResult({
      failed: new Map([["ns/skill-b", "tool missing"]]),
      skipped: ["ns/skill-c"],
    });
    expect(listsOf(first.merge(second))).toEqual({
      refreshed: ["ns/skill-a"],
      failed: [["ns/skill-b", "tool missing"]],
      skipped: ["ns/skill-c"],
    });
  });

  test("leaves a name that both know where the later result has it", () => {
    const first = new SkillRefreshResult({ refreshed: ["a"] });
    const later = new SkillRefreshResult({ failed: new Map([["a", "x"]]) });
    expect(listsOf(first.merge(later))).toEqual({ refreshed: [], failed: [["a", "x"]], skipped: [] });
    expect(listsOf(later.merge(first))).toEqual({ refreshed: ["a"], failed: [], skipped: [] });
  });

  test("is associative, has the empty result as its neutral element, loses no name and doubles none", () => {
    fc.assert(
      fc.property(result, result, result, (a, b, c) => {
        expect(listsOf(a.merge(b).merge(c))).toEqual(listsOf(a.merge(b.merge(c))));
        expect(listsOf(a.merge(EMPTY))).toEqual(listsOf(a));
        expect(listsOf(EMPTY.merge(a))).toEqual(listsOf(a));
        const merged = namesOf(a.merge(b));
        expect(new Set(merged)).toEqual(new Set([...namesOf(a), ...namesOf(b)]));
        expect(merged).toHaveLength(new Set(merged).size);
      }),
    );
  });
});
