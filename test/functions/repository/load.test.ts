import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SkillError } from "../../../functions/contract/fault.ts";
import type { Skill } from "../../../functions/contract/skill.ts";
import { digestOfEntries } from "../../../functions/repository/digest.ts";
import {
  copyOfShippedSkills,
  DEMO,
  type Files,
  load,
  pinAsIs,
  pinnedRoot,
  pinsAt,
  refusals,
  SHIPPED_SKILLS,
  skillMd,
  statusesOf,
  temporaryDirectory,
  toolJson,
  writeFiles,
} from "./skills-on-disk.ts";

const MD = "acme/demo/SKILL.md";
const TOOL = "acme/demo/tool.json";

/** The skills of every loaded repository. */
function skillsAt(root: string): readonly Skill[] {
  return load(root).flatMap((status) => (status.status === "loaded" ? status.skills : []));
}

function refusalsOf(files: Files): readonly string[] {
  return refusals(pinnedRoot({ ...DEMO, ...files }));
}

describe("a repository that is as it was pinned", () => {
  test("gives each skill its texts, its files and its digest", () => {
    const [skill] = skillsAt(pinnedRoot(DEMO));
    expect(skill).toMatchObject({
      name: "acme/demo",
      origin: "acme",
      description: "Makes demo.",
      instructions: "# Body\nText.\n",
      callable: { ref: "demo@1", handler: "data_table", templates: new Map([["document", "Hello {{name}}\n"]]) },
    });
    expect(skill?.files.map(({ path }) => path)).toEqual(["SKILL.md", "templates/document.md", "tool.json"]);
    const entries = Object.entries(DEMO).map(([path, content]) => ({
      path: path.slice("acme/demo/".length),
      content: Buffer.from(content),
    }));
    expect(skill?.digest).toBe(digestOfEntries(entries));
  });

  test("a skill without tool.json is instructions only", () => {
    const [skill] = skillsAt(pinnedRoot({ [MD]: skillMd("demo", "allowed-tools: create_pdf@1 make_plan@1") }));
    expect(skill?.callable).toBeUndefined();
    expect(skill?.toolRefs).toEqual(["create_pdf@1", "make_plan@1"]);
  });

  test("includes get the namespace of their repository, unless they name another", () => {
    const header = ["metadata:", "  includes: other builtin/status-update"];
    const [skill] = skillsAt(pinnedRoot({ [MD]: skillMd("demo", ...header) }));
    expect(skill?.includes).toEqual(["acme/other", "builtin/status-update"]);
  });

  test("skills and repositories come in the order of their names", () => {
    const root = pinnedRoot({
      "b-repo/z/SKILL.md": skillMd("z"),
      "b-repo/10/SKILL.md": skillMd("10"),
      "b-repo/9/SKILL.md": skillMd("9"),
      "a-repo/x/SKILL.md": skillMd("x"),
    });
    expect(skillsAt(root).map(({ name }) => name)).toEqual(["a-repo/x", "b-repo/10", "b-repo/9", "b-repo/z"]);
  });

  test("a nested SKILL.md is data that the digest covers, not a skill", () => {
    const nested = "acme/demo/assets/sample/SKILL.md";
    const root = pinnedRoot({ [MD]: skillMd("demo"), [nested]: "no frontmatter here" });
    expect(skillsAt(root).map(({ name }) => name)).toEqual(["acme/demo"]);
    writeFileSync(join(root, nested), "no frontmatter there");
    expect(refusals(root)).toEqual([expect.stringContaining(`${nested} was changed`)]);
  });

  test("only the repositories that are wanted are loaded, each once", () => {
    const root = copyOfShippedSkills();
    writeFiles(root, DEMO);
    pinAsIs(root);
    expect(statusesOf(root)).toEqual(["acme loaded", "builtin loaded"]);
    expect(statusesOf(root, { wanted: ["builtin", "builtin"] })).toEqual(["builtin loaded"]);
    expect(statusesOf(root, { wanted: [] })).toEqual([]);
  });

  test("the digest of a repository changes with any skill's name or bytes", () => {
    const digests = [
      DEMO,
      { ...DEMO, "acme/demo/extra.md": "" },
      { ...DEMO, "acme/other/SKILL.md": skillMd("other") },
      { "acme/other/SKILL.md": skillMd("other") },
      { "acme/another/SKILL.md": skillMd("another") },
    ].map((files) => load(pinnedRoot(files)).map((status) => status.status === "loaded" && status.digest)[0]);
    expect(new Set(digests).size).toBe(5);
    expect(digests.every((digest) => /^[0-9a-f]{64}$/.test(String(digest)))).toBe(true);
  });
});

describe("SKILL.md", () => {
  test("every fault is reported together with those of tool.json", () => {
    const reasons = refusalsOf({
      [MD]: "---\nname: other\nversion: 2\n---\n",
      [TOOL]: toolJson({ handler: "shell", id: "Demo", extra: 1, input_schema: { type: "array" } }),
    });
    for (const expected of [
      /^acme\/demo\/SKILL\.md:2: name-directory: .*"other".*"demo"/,
      /^acme\/demo\/SKILL\.md:3: unknown-field: .*"version"/,
      /^acme\/demo\/SKILL\.md:1: description-required: /,
      /^acme\/demo\/tool\.json: \/id: .*"Demo"/,
      /^acme\/demo\/tool\.json: \/handler: .*"shell".*data_table/,
      /^acme\/demo\/tool\.json: \/extra: /,
      /^acme\/demo\/tool\.json: \/input_schema\/type: .*"object".*"array"/,
    ]) {
      expect(reasons).toContainEqual(expect.stringMatching(expected));
    }
  });

  test.each(["SKILL.MD", "skill.md", "Skill.md"])("%s is refused, and both names are given", (name) => {
    const root = pinnedRoot({ [`acme/demo/${name}`]: skillMd("demo") });
    expect(refusals(root)).toEqual([expect.stringMatching(`^acme/demo/SKILL\\.md is missing; ${name} is there`)]);
  });

  test("both cases of the name beside each other are refused", () => {
    const root = pinnedRoot({ [MD]: skillMd("demo"), "acme/demo/skill.md": skillMd("demo") });
    expect(refusals(root).join("\n")).toMatch(/acme\/demo\/skill\.md differs from SKILL\.md only in/);
  });

  test("a directory without one is refused", () => {
    expect(refusals(pinnedRoot({ "acme/demo/README.md": "x" }))).toEqual(["acme/demo/SKILL.md is missing"]);
  });

  test.each([
    ["NUL in the body", `${skillMd("demo")}R\0month`, /SKILL\.md:7: control-character: .*NUL/],
    ["a comment above the first fence", `<!-- copied -->\n${skillMd("demo")}`, /SKILL\.md:1: .*must start/],
    ["more bytes than are read", skillMd("demo") + "x".repeat(512 * 1024), /SKILL\.md:1: file-size: .*524288/],
  ])("%s is refused", (_, text, reason) => {
    expect(refusals(pinnedRoot({ [MD]: text }))).toContainEqual(expect.stringMatching(reason));
  });
});

describe("tool.json", () => {
  test.each([
    ["an unknown handler", { handler: "rm -rf" }, /\/handler: .*"rm -rf".*markdown_document, data_table/],
    ["a handler that is a property of every object", { handler: "constructor" }, /\/handler: .*"constructor"/],
    ["an unknown key", { run: "echo" }, /\/run: /],
    ["an id in upper case", { id: "Demo" }, /\/id: .*wanted, got "Demo"/],
    ["a version with an @", { version: "1@2" }, /\/version: .*wanted, got "1@2"/],
    ["a version that is a number", { version: 1 }, /\/version: /],
    ["no schema", { input_schema: undefined }, /\/input_schema: /],
    ["a schema that is no object", { input_schema: true }, /\/input_schema: .*boolean/],
    ["a schema that is a list", { input_schema: [] }, /\/input_schema: .*array/],
    ["a schema for something else", { input_schema: {} }, /\/input_schema\/type: "object" wanted, got nothing/],
    ["a dialect that is not supported", schemaWith({ $schema: "http://json-schema.org/draft-04/schema#" }), /draft-04/],
    ["a dialect that is no text", schemaWith({ $schema: 7 }), /\/input_schema\/\$schema: .*"7"/],
    [
      "a schema too large",
      schemaWith({ description: "x".repeat(65_536) }),
      /\/input_schema: has 6\d{4} bytes, at most/,
    ],
    ["an output schema that is no object", { output_schema: { type: "string" } }, /\/output_schema\/type: .*"string"/],
    ["a template outside templates/", { templates: { a: "tool.json" } }, /\/templates\/a: .*got "tool\.json"/],
    ["a template above the skill", { templates: { a: "templates/../../x" } }, /\/templates\/a: .*wanted, got/],
    ["a template's name with a dot", { templates: { "a.b": "templates/a.md" } }, /\/templates\/a\.b: .*wanted/],
    ["a template that is missing", { templates: { a: "templates/a.md" } }, /acme\/demo\/templates\/a\.md is missing/],
  ])("%s is refused, and the reason says what was wanted and got", (_, changes, reason) => {
    const reasons = refusalsOf({ [TOOL]: toolJson(changes) });
    expect(reasons).toEqual([expect.stringMatching(reason)]);
    expect(reasons[0]).toMatch(/^acme\/demo\/tool\.json: /);
  });

  function schemaWith(fields: object): { readonly input_schema: object } {
    return { input_schema: { type: "object", ...fields } };
  }

  test.each([
    ["draft-07", "http://json-schema.org/draft-07/schema#"],
    ["draft-07 without a fragment", "http://json-schema.org/draft-07/schema"],
    ["2020-12", "https://json-schema.org/draft/2020-12/schema"],
  ])("%s is accepted as dialect", (_, $schema) => {
    expect(refusalsOf({ [TOOL]: toolJson(schemaWith({ $schema })) })).toEqual([]);
  });

  test.each([
    ["a key that stands twice", toolJson().replace('"id"', '"id":"other","id"'), /duplicate key "id"/],
    ["the key __proto__", toolJson().replace('"id"', '"__proto__":{},"id"'), /__proto__/],
    ["__proto__ inside the schema", toolJson().replace('"type"', '"__proto__":{},"type"'), /__proto__/],
    ["a list", "[]", /array/],
    ["nothing", "", /JSON expected/],
    ["half a text", toolJson().slice(0, -1), /not JSON/],
    ["deep nesting", `${'{"a":'.repeat(40)}1${"}".repeat(40)}`, /deeper than 32/],
    ["Latin-1", Buffer.from(toolJson({ id: "caf\u00e9" }), "latin1"), /not valid UTF-8/],
  ])("%s is refused", (_, text, reason) => {
    expect(refusalsOf({ [TOOL]: text })).toEqual([expect.stringMatching(reason)]);
  });

  test("a template that is not UTF-8 is refused by its path", () => {
    const files = { "acme/demo/templates/document.md": Uint8Array.from([0xff, 0xfe, 0x41]) };
    expect(refusalsOf(files)).toEqual([
      "acme/demo/tool.json: /templates/document: acme/demo/templates/document.md is not valid UTF-8",
    ]);
  });

  test("every missing template is named", () => {
    const templates = { a: "templates/a.md", b: "templates/b.md" };
    expect(refusalsOf({ [TOOL]: toolJson({ templates }) })).toHaveLength(2);
  });

  test("a name in another case is refused instead of leaving the skill uncallable", () => {
    const root = pinnedRoot({ [MD]: skillMd("demo"), "acme/demo/Tool.json": toolJson() });
    expect(refusals(root)).toEqual([expect.stringMatching(/^acme\/demo\/tool\.json is missing; Tool\.json is there/)]);
  });

  test("two skills with one ref are refused, both by name", () => {
    const reasons = refusalsOf({ "acme/twin/SKILL.md": skillMd("twin"), "acme/twin/tool.json": toolJson() });
    expect(reasons).toEqual([expect.stringMatching(/^acme\/twin\/tool\.json: demo@1 .*acme\/demo/)]);
  });

  test("what a file says cannot act on a terminal", () => {
    const hostile = "\u001b[2J\u202e\u009b31m";
    const reasons = refusalsOf({
      [TOOL]: toolJson({ handler: hostile, [hostile]: 1, templates: { [hostile]: hostile }, version: hostile }),
      [MD]: `---\n"\\u001b[2J\\u202E": 1\n---\n`,
    });
    expect(reasons.length).toBeGreaterThan(4);
    expect(reasons.join("")).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
    expect(reasons.join("\n")).toContain("\\u{202e}");
  });
});

describe("pins", () => {
  test("a skill without a pin refuses its repository", () => {
    const root = pinnedRoot(DEMO);
    writeFiles(root, { "acme/new/SKILL.md": skillMd("new") });
    expect(refusals(root)).toEqual(["acme/new/SKILL.md is not pinned in pins.json"]);
  });

  test("a repository without pins is refused", () => {
    const root = pinnedRoot(DEMO);
    writeFiles(root, { "other/x/SKILL.md": skillMd("x") });
    expect(load(root)).toMatchObject([
      { name: "acme", status: "loaded" },
      {
        name: "other",
        status: "refused",
        reasons: [expect.stringMatching(/^other\/ has no pins/), expect.any(String)],
      },
    ]);
  });

  test("a pin without a skill refuses its repository, by every file that is missing", () => {
    const root = pinnedRoot({ ...DEMO, "acme/gone/SKILL.md": skillMd("gone") });
    rmSync(join(root, "acme/gone"), { recursive: true });
    expect(refusals(root)).toEqual(["acme/gone/SKILL.md is pinned in pins.json but missing"]);
  });

  test("a repository that is wanted and is nowhere is refused", () => {
    expect(statusesOf(pinnedRoot(DEMO), { wanted: ["acme", "ghost"] })).toEqual(["acme loaded", "ghost refused"]);
  });

  test("one refused repository leaves the other loaded", () => {
    const root = copyOfShippedSkills();
    writeFiles(root, DEMO);
    pinAsIs(root);
    writeFiles(root, { [MD]: `${skillMd("demo")} ` });
    expect(statusesOf(root)).toEqual(["acme refused", "builtin loaded"]);
    expect(refusals(root).join()).toContain(MD);
  });

  test("an empty directory and a bad name beside the repositories refuse only what they would have been", () => {
    const root = pinnedRoot(DEMO);
    mkdirSync(join(root, "empty"));
    writeFiles(root, { "My Skills/x/SKILL.md": "x" });
    expect(statusesOf(root)).toEqual(["My Skills refused", "acme loaded", "empty refused"]);
    expect(statusesOf(root, { wanted: ["acme"] })).toEqual(["acme loaded"]);
  });

  test("a file beside the repositories belongs to none and refuses all", () => {
    const root = copyOfShippedSkills();
    writeFiles(root, DEMO);
    pinAsIs(root);
    writeFiles(root, { "stray.md": "x" });
    expect(statusesOf(root)).toEqual(["acme refused", "builtin refused"]);
  });

  test.each([
    ["a refusal", new SkillError("pins.json: not a pins file")],
    ["a defect", new TypeError("x is not a function at /var/task/index.mjs")],
    ["something that is no error", "/var/task"],
  ])("pins that throw %s refuse every repository and stop nothing", (_, thrown) => {
    const statuses = load(SHIPPED_SKILLS, {
      pins: () => {
        throw thrown;
      },
    });
    expect(statuses).toEqual([
      { name: "builtin", status: "refused", reasons: [expect.stringMatching(/^pins\.json[: ](?!.*\/var)/)] },
    ]);
  });

  test("no pins.json refuses every repository", () => {
    const root = pinnedRoot(DEMO);
    rmSync(join(root, "pins.json"));
    expect(statusesOf(root)).toEqual(["acme refused"]);
    expect(refusals(root)).toEqual([expect.stringContaining("pins.json")]);
  });

  test("pins for nothing load nothing", () => {
    const root = pinnedRoot({});
    expect(load(root)).toEqual([]);
  });
});

describe("a root that cannot be read", () => {
  test("refuses every repository that is pinned", () => {
    const root = pinnedRoot(DEMO);
    expect(load(join(root, "gone"), { pins: () => pinsAt(root) })).toEqual([
      { name: "acme", status: "refused", reasons: ["the skills directory cannot be read (ENOENT)"] },
    ]);
  });

  test("is never silent, even when no repository can be named", () => {
    const gone = join(temporaryDirectory(), "gone");
    expect(load(gone)).toEqual([
      {
        name: "*",
        status: "refused",
        reasons: [expect.stringContaining("ENOENT"), expect.stringContaining("pins.json")],
      },
    ]);
    expect(statusesOf(gone, { wanted: ["acme"] })).toEqual(["acme refused"]);
  });

  test("is refused when it is a file", () => {
    const root = pinnedRoot({ file: "x" });
    expect(refusals(join(root, "file")).join()).toContain("ENOTDIR");
  });
});

test("no reason holds an absolute path", () => {
  const root = pinnedRoot({ ...DEMO, [TOOL]: "{", "acme/x/SKILL.md": "", "acme/.hidden": "", "acme/stray": "" });
  renameSync(join(root, MD), join(root, "acme/demo/SKILL.MD"));
  const all = [
    ...refusals(root),
    ...refusals(join(root, "gone")),
    ...refusals(join(root, MD)),
    ...refusals(pinnedRoot({ [TOOL]: "{" })),
  ];
  expect(all.length).toBeGreaterThan(6);
  for (const reason of all) expect(reason).not.toMatch(/(^|[\s"'(])\/(tmp|var|work|home|root|Users)\b/);
});
