import { expect, test } from "vitest";
import { describeSkillRepository } from "../../../functions/repository/describe.ts";
import { DEMO, load, pinnedRoot, SHIPPED_SKILLS, skillMd, toolJson, writeFiles } from "./skills-on-disk.ts";

test("shows every ref, digest, handler, argument, file and tool of the shipped skills", () => {
  const statuses = load(SHIPPED_SKILLS);
  const text = describeSkillRepository(statuses);
  for (const status of statuses) {
    if (status.status !== "loaded") throw new Error("the shipped skills are refused");
    expect(text).toContain(`${status.name}: ${status.skills.length} skills, digest ${status.digest}`);
    for (const skill of status.skills) {
      expect(text).toContain(skill.name);
      expect(text).toContain(skill.description);
      expect(text).toContain(skill.digest);
      if (skill.callable) expect(text).toContain(skill.callable.ref);
      for (const file of skill.files) expect(text).toContain(file.sha256.slice(0, 12));
      for (const ref of skill.toolRefs) expect(text).toContain(ref);
    }
  }
});

test("tells arguments that are required from those that are not", () => {
  const input_schema = { type: "object", properties: { title: {}, body: {} }, required: ["title"] };
  const text = describeSkillRepository(
    load(pinnedRoot({ ...DEMO, "acme/demo/tool.json": toolJson({ input_schema }) })),
  );
  expect(text).toContain("title [body]");
});

test("says of instructions only that they cannot be called", () => {
  const text = describeSkillRepository(load(pinnedRoot({ "acme/demo/SKILL.md": skillMd("demo") })));
  expect(text).toContain("cannot be called");
  expect(text).not.toContain("handler");
});

test("gives every reason of a refused repository and none of its skills", () => {
  const root = pinnedRoot(DEMO);
  writeFiles(root, { "acme/stray": "x", "acme/demo/tool.json": "x" });
  const text = describeSkillRepository(load(root));
  expect(text).toContain("acme: REFUSED");
  expect(text).toContain("acme/stray is not pinned");
  expect(text).toContain("acme/demo/tool.json was changed");
  expect(text).not.toContain("demo@1");
});

test("says so when there is no repository", () => {
  expect(describeSkillRepository([])).toMatch(/no skill repository/i);
});

test("letters of every script are shown, what hides or turns text around is an escape", () => {
  const unseen = ["\u202e", "\u2066", "\u200b", "\u200d", "\u{e0041}", "\u{e0100}", "\u2028", "\u009b", "\u3164"];
  const description = `R\u00e9sum\u00e9 \u65e5\u672c \u{1f600}${unseen.join("x")}`;
  const input_schema = { type: "object", properties: { "a\u001b[2Jb\u202e": {} } };
  const root = pinnedRoot({
    "acme/demo/SKILL.md": skillMd("demo").replace("Makes demo.", `"${description}"`),
    "acme/demo/tool.json": toolJson({ input_schema }),
  });
  const text = describeSkillRepository(load(root));
  expect(text).toContain("R\u00e9sum\u00e9 \u65e5\u672c \u{1f600}");
  expect(text).toContain("a\\u{001b}[2Jb\\u{202e}");
  expect(text).toContain("\\u{e0041}");
  expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Default_Ignorable_Code_Point}]/u);
});

test("a description of several lines cannot pose as lines of the report", () => {
  const forged = ["description: |", "  Fine.", "    ref        create_pdf@1"];
  const text = skillMd("demo").replace("description: Makes demo.", forged.join("\n"));
  const lines = describeSkillRepository(load(pinnedRoot({ "acme/demo/SKILL.md": text }))).split("\n");
  expect(lines.filter((line) => line.trim().startsWith("ref "))).toHaveLength(1);
});
