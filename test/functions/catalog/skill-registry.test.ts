import { describe, expect, test } from "vitest";
import { toSkillDetail, toSkillSummaries } from "../../../functions/catalog/skill-views.ts";
import { SkillDetail } from "../../../functions/contract/catalog.ts";
import { callable, catalogOf, instructions, shippedCatalog } from "./catalogs.ts";
import "../../kit/to-fail.ts";

/** Skills of `acme`, each by what it includes and its tools. */
function registryOf(
  skills: Readonly<Record<string, { readonly includes?: readonly string[]; readonly tools?: readonly string[] }>>,
) {
  const files = Object.entries(skills).map(([name, skill]) => instructions(`acme/${name}`, skill));
  return catalogOf(Object.assign({}, ...files)).skills;
}

const brief = ({ uses, problems }: ReturnType<ReturnType<typeof registryOf>["resolve"]>) => ({
  uses: uses.map(({ ref, via }) => `${via.join(" > ").replaceAll("acme/", "")}: ${ref}`),
  problems: problems.map((problem) => problem.replaceAll("acme/", "")),
});

describe("a tool set", () => {
  test("holds the own and the included tools, each once, sorted, by the shortest way in", () => {
    const skills = registryOf({
      a: { includes: ["b", "c"], tools: ["t2@1"] },
      b: { includes: ["d"], tools: ["t3@1", "t2@1"] },
      c: { tools: ["t1@1", "t3@1"] },
      d: { includes: ["c"], tools: ["t4@1", "t1@1"] },
    });
    expect(brief(skills.resolve("acme/a"))).toEqual({
      uses: ["a > c: t1@1", "a: t2@1", "a > b: t3@1", "a > b > d: t4@1"],
      problems: [],
    });
  });

  test("is not disturbed by a reference that stands twice", () => {
    const skills = registryOf({ a: { includes: ["b", "b"], tools: ["t1@1", "t1@1"] }, b: { tools: ["t1@1"] } });
    expect(brief(skills.resolve("acme/a"))).toEqual({ uses: ["a: t1@1"], problems: [] });
  });

  test("reaches into another repository by its full name", () => {
    const files = {
      ...instructions("acme/a", { includes: ["best/b"] }),
      ...instructions("best/b", { tools: ["t@1"] }),
    };
    expect(catalogOf(files).skills.resolve("acme/a").uses).toEqual([{ ref: "t@1", via: ["acme/a", "best/b"] }]);
  });
});

describe("problems", () => {
  test.each([
    ["a skill that includes itself", { x: { includes: ["x"] } }, ["x → x"]],
    [
      "a cycle that is reached",
      { x: { includes: ["a"] }, a: { includes: ["b"] }, b: { includes: ["a"] } },
      ["x → a → b → a"],
    ],
    [
      "a cycle between two that are both included",
      { x: { includes: ["a", "b"] }, a: { includes: ["b"] }, b: { includes: ["a"] } },
      ["x → a → b → a"],
    ],
    ["an include that is missing", { x: { includes: ["b"] }, b: { includes: ["ghost"] } }, ["x → b → ghost"]],
    ["one of several", { x: { includes: ["gone", "a"] }, a: { includes: ["ghost", "x"] } }, ["x → a → x"]],
    [
      "two ways to one skill, which is no problem",
      { x: { includes: ["a", "b"] }, a: { includes: ["c"] }, b: { includes: ["c"] }, c: {} },
      [],
    ],
  ])("name the way: %s", (_, skills, problems) => {
    expect(brief(registryOf(skills).resolve("acme/x")).problems).toEqual(problems);
  });

  test("are only those of who reaches them", () => {
    const skills = registryOf({
      a: { includes: ["b"] },
      b: { includes: ["a"], tools: ["t@1"] },
      c: { tools: ["t@1"] },
    });
    expect(brief(skills.resolve("acme/c"))).toEqual({ uses: ["c: t@1"], problems: [] });
    expect(brief(skills.resolve("acme/b")).uses).toEqual(["b: t@1"]);
  });

  test("a long chain overflows nothing", () => {
    const names = Array.from({ length: 300 }, (_, index) => `s${index}`);
    const chain = Object.fromEntries(names.map((name, index) => [name, { includes: [`s${index + 1}`] }]));
    expect(brief(registryOf({ ...chain, s300: { tools: ["t@1"], includes: ["s0"] } }).resolve("acme/s0"))).toEqual({
      uses: [expect.stringMatching(/^s0 > .* > s300: t@1$/)],
      problems: [expect.stringMatching(/^s0 → .* → s300 → s0$/)],
    });
  });
});

describe("skills on show", () => {
  test("are listed by name, approved or not", () => {
    const summaries = toSkillSummaries(shippedCatalog(["status_update@1"]));
    expect(summaries.map(({ name, approved }) => `${name} ${approved}`)).toEqual([
      "builtin/calendar-event false",
      "builtin/data-table false",
      "builtin/incident-report false",
      "builtin/meeting-minutes false",
      "builtin/status-update true",
      "builtin/weekly-review false",
    ]);
    expect(summaries[5]).not.toHaveProperty("ref");
  });

  test("show instructions, files and the flattened tool set with what is approved of it", () => {
    const detail = SkillDetail.parse(toSkillDetail("builtin/weekly-review", shippedCatalog(["status_update@1"])));
    expect(detail).toMatchObject({
      license: "Apache-2.0",
      instructions: expect.stringContaining("# Weekly review"),
      files: [{ path: "SKILL.md", sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }],
      includes: ["builtin/status-update", "builtin/meeting-minutes"],
      tool_set: [
        { ref: "calendar_event@1", via: ["builtin/weekly-review"], approved: false },
        { ref: "meeting_minutes@1", via: ["builtin/weekly-review"], approved: false },
        { ref: "status_update@1", via: ["builtin/weekly-review"], approved: true },
      ],
      problems: [],
      last_refresh: { outcome: "refreshed" },
    });
  });

  test("show the schema and ref of a callable one", () => {
    const detail = toSkillDetail("acme/a", catalogOf(callable("acme/a", "a"), ["a@1"]));
    expect(detail).toMatchObject({ ref: "a@1", approved: true, input_schema: { type: "object" } });
    expect(detail.tool_set).toEqual([
      {
        ref: "a@1",
        via: ["acme/a"],
        origin: "acme",
        state: "present",
        exact_ref: "a@1",
        approved: true,
        served: true,
      },
    ]);
  });

  test("name the tools that nothing provides, with the way to them", () => {
    const files = {
      ...instructions("acme/a", { includes: ["b"], tools: ["create_pdf@1"] }),
      ...instructions("acme/b", { tools: ["ghost@1"] }),
    };
    const detail = toSkillDetail("acme/a", catalogOf(files));
    expect(detail.problems).toEqual(["acme/a → acme/b: ghost@1"]);
    expect(detail.last_refresh).toEqual({ outcome: "failed", message: "missing tools: acme/a → acme/b: ghost@1" });
  });

  test.each(["acme/none", "none", "", "constructor", "acme/a/"])("that are none are not found: %j", (name) => {
    expect(() => toSkillDetail(name, catalogOf(instructions("acme/a", {})))).toFail("SKILL_NOT_FOUND");
  });
});
