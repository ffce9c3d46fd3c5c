import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SkillRefreshResult } from "../../../functions/catalog/refresh-result.ts";
import { SkillRegistry, type ToolLookup } from "../../../functions/catalog/skill-registry.ts";
import type { Skill } from "../../../functions/contract/skill.ts";
import { catalogOf, instructions } from "./catalogs.ts";
import "../../kit/to-fail.ts";

type Shape = Readonly<Record<string, { readonly includes?: readonly string[]; readonly tools?: readonly string[] }>>;

/** Verified skills of `s`, each by what it includes and its tools. */
function skillsOf(shape: Shape): readonly Skill[] {
  const files = Object.entries(shape).map(([name, skill]) => instructions(`s/${name}`, skill));
  return catalogOf(Object.assign({}, ...files)).skills.list();
}

type Logged = { readonly level: string; readonly message: string };

function registryOf(shape: Shape, lookup?: ToolLookup) {
  const lines: Logged[] = [];
  const log = (level: string, message: string) => void lines.push({ level, message });
  return { registry: new SkillRegistry({ skills: skillsOf(shape), lookup, log }), lines };
}

const offering =
  (...refs: readonly string[]): ToolLookup =>
  (ref) => ({ state: refs.includes(ref) ? "present" : "absent" });

const brief = ({ refreshed, failed, skipped }: SkillRefreshResult) => ({
  refreshed: refreshed.map((name) => name.replace("s/", "")),
  failed: Object.fromEntries([...failed].map(([name, why]) => [name.replace("s/", ""), why.replaceAll("s/", "")])),
  skipped: skipped.map((name) => name.replace("s/", "")),
});

describe("a refresh of one skill", () => {
  test("whose refs are all found is refreshed", () => {
    const { registry } = registryOf({ a: { tools: ["t@1"] } }, offering("t@1"));
    expect(brief(registry.refresh("s/a"))).toEqual({ refreshed: ["a"], failed: {}, skipped: [] });
  });

  test("whose refs are missing fails with all of them, sorted, each with its way in", () => {
    const shape = { a: { includes: ["b"], tools: ["z@1", "t@1"] }, b: { tools: ["ghost@1"] } };
    const { registry } = registryOf(shape, offering("t@1"));
    expect(brief(registry.refresh("s/a")).failed).toEqual({ a: "missing tools: a → b: ghost@1, a: z@1" });
  });

  test("without a tool registry is refreshed, and a warning says what to do", () => {
    const { registry, lines } = registryOf({ a: { tools: ["t@1"] } });
    expect(brief(registry.refresh("s/a")).refreshed).toEqual(["a"]);
    expect(lines).toEqual([{ level: "warn", message: expect.stringContaining("give the skill registry a lookup") }]);
  });

  test("whose tools cannot be looked up now is skipped", () => {
    const lookup: ToolLookup = (ref) => ({ state: ref === "far@1" ? "unknown" : "present" });
    const { registry } = registryOf({ a: { tools: ["far@1"] }, b: { tools: ["t@1"] } }, lookup);
    expect(brief(registry.refreshAll())).toEqual({ refreshed: ["b"], failed: {}, skipped: ["a"] });
  });

  test("that misses one tool and cannot ask for another has failed", () => {
    const lookup: ToolLookup = (ref) => ({ state: ref === "far@1" ? "unknown" : "absent" });
    const { registry } = registryOf({ a: { tools: ["far@1", "gone@1"] } }, lookup);
    expect(brief(registry.refreshAll()).failed).toEqual({ a: "missing tools: a: gone@1" });
  });

  test("whose tool is not the approved one fails with both digests", () => {
    const lookup: ToolLookup = () => ({ state: "changed", approved: "aaaaaaaaaaaa", offered: "bbbbbbbbbbbb" });
    const { registry } = registryOf({ a: { tools: ["t@1"] } }, lookup);
    expect(brief(registry.refresh("s/a")).failed).toEqual({
      a: "changed tools: a: t@1 (approved aaaaaaaaaaaa, offered bbbbbbbbbbbb)",
    });
  });

  test.each(["s/none", "", "constructor", "__proto__"])("that nobody registered throws: %j", (name) => {
    const { registry } = registryOf({ a: {} }, offering());
    expect(() => registry.refresh(name)).toFail("SKILL_NOT_FOUND");
  });
});

describe("a refresh of all", () => {
  test("fails whoever reaches a cycle, with the path, and nobody else", () => {
    const shape = {
      a: { includes: ["b"] },
      b: { includes: ["a"] },
      c: { tools: ["t1@1"] },
      d: { includes: ["c"] },
      x: { includes: ["a"] },
    };
    expect(brief(registryOf(shape, offering("t1@1")).registry.refreshAll())).toEqual({
      refreshed: ["c", "d"],
      failed: {
        a: "the includes lead in a circle: a → b → a",
        b: "the includes lead in a circle: b → a → b",
        x: "the includes lead in a circle: x → a → b → a",
      },
      skipped: [],
    });
  });

  test("fails a skill that includes itself", () => {
    const { registry } = registryOf({ a: { includes: ["a"], tools: ["t1@1"] } }, offering("t1@1"));
    expect(brief(registry.refreshAll()).failed).toEqual({ a: "the includes lead in a circle: a → a" });
  });

  test("fails whoever reaches a missing include, with the path", () => {
    const shape = {
      a: { includes: ["ghost"], tools: ["t1@1"] },
      b: { includes: ["a"] },
      c: { tools: ["t9@1", "t1@1", "t8@1"] },
    };
    expect(brief(registryOf(shape, offering("t1@1")).registry.refreshAll())).toEqual({
      refreshed: [],
      failed: {
        a: "an include is missing: a → ghost",
        b: "an include is missing: b → a → ghost",
        c: "missing tools: c: t8@1, c: t9@1",
      },
      skipped: [],
    });
  });

  test("looks each tool up once, and looks again the next time", () => {
    const asked: string[] = [];
    const lookup: ToolLookup = (ref) => {
      asked.push(ref);
      return { state: "present" };
    };
    const { registry } = registryOf({ a: { includes: ["b"], tools: ["t@1"] }, b: { tools: ["t@1", "u@1"] } }, lookup);
    registry.refreshAll();
    expect(asked).toEqual(["t@1", "u@1"]);
    registry.refreshAll();
    expect(asked).toHaveLength(4);
  });

  test("puts each skill into exactly one list, and agrees with refreshing them one by one", () => {
    const names = ["a", "b", "c", "d", "e"];
    const skill = fc.record({
      includes: fc.array(fc.constantFrom(...names, "ghost"), { maxLength: 3 }),
      tools: fc.array(fc.constantFrom("t1@1", "t2@1", "t3@1", "far@1"), { maxLength: 3 }),
    });
    const shape = fc
      .tuple(...names.map(() => skill))
      .map((skills) => Object.fromEntries(names.map((name, index) => [name, skills[index] ?? {}])));
    const lookup: ToolLookup = (ref) => ({
      state: ref === "far@1" ? "unknown" : ref === "t3@1" ? "absent" : "present",
    });
    fc.assert(
      fc.property(shape, (given) => {
        const { registry } = registryOf(given, lookup);
        const all = registry.refreshAll();
        const listed = [...all.refreshed, ...all.failed.keys(), ...all.skipped].sort();
        expect(listed).toEqual(names.map((name) => `s/${name}`));
        for (const name of listed) expect(statusOf(registry.refresh(name), name)).toEqual(statusOf(all, name));
        for (const name of names) expect(statusOf(all, `s/${name}`)).toBe(expectedStatus(name, given));
      }),
      { numRuns: 150 },
    );
  });
});

function statusOf(result: SkillRefreshResult, name: string): string {
  if (result.failed.has(name)) return "failed";
  return result.skipped.includes(name) ? "skipped" : result.refreshed.includes(name) ? "refreshed" : "none";
}

/** By walking from the skill, the slow and obvious way. */
function expectedStatus(start: string, shape: Shape): string {
  const refs = new Set<string>();
  let broken = false;
  const walk = (name: string, above: readonly string[]): void => {
    const skill = shape[name];
    if (skill === undefined || above.includes(name)) {
      broken = true;
      return;
    }
    for (const ref of skill.tools ?? []) refs.add(ref);
    for (const include of skill.includes ?? []) walk(include, [...above, name]);
  };
  walk(start, []);
  if (broken || refs.has("t3@1")) return "failed";
  return refs.has("far@1") ? "skipped" : "refreshed";
}
