import fc from "fast-check";
import { expect, test } from "vitest";
import { codePointCount, isBlank } from "../../../functions/contract/text.ts";
import type { SkillManifest } from "../../../functions/repository/skill-manifest.ts";
import type { SkillMarkdown } from "../../../functions/repository/skill-md.ts";
import { findingsOf, manifestOf, readSkill } from "./read-skill.ts";

/** What no text of a manifest may hold, a carriage return included. */
const FORBIDDEN = /[\0-\x08\v-\x1f\uFEFF]/;

const VALID = [
  "---",
  "name: demo-skill",
  "description: >-",
  "  Makes a plan.",
  "  Use for plans.",
  'license: "MIT"',
  "compatibility: 'Needs git'",
  "metadata:",
  "  version: 1.0",
  "  includes: base-style",
  "allowed-tools: Bash(git:*, x) Read",
  "---",
  "# Body",
  "Text.",
  "",
].join("\n");

const FRAGMENTS = [
  ..."---|\n|...|name: demo-skill|description: |metadata:|allowed-tools: |includes: a b|license: |compatibility: ".split(
    "|",
  ),
  ..."key|__proto__|<<|: |:|- |? |, |,|[|]|{|}|(|)|&a |*a |!!binary |! |%YAML 1.2|# |'|\"|\\|\\u0000|\\ud800|>-|@|`|~".split(
    "|",
  ),
  "|",
  "|+",
  "\n",
  "\n  ",
  "\n    ",
  "\r\n",
  "\r",
  "\t",
  " ",
  "\uFEFF",
  "\u200b",
  "\u2028",
  "\u0085",
  "\u0000",
  "\u0002",
  "\u0018",
  "\u001f",
  "\u{1f600}",
  "1e3",
];

/** Text that is nearly a SKILL.md: the parser is reached, instead of the first fence refusing all. */
const yamlish = fc
  .array(fc.constantFrom(...FRAGMENTS), { maxLength: 60 })
  .map((fragments) => fragments.join(""))
  .chain((header) =>
    fc.constantFrom(header, `---\n${header}\n---\nx\n`, `---\nname: demo-skill\ndescription: D.\n${header}\n---\n`),
  );

const edit = fc.record({
  at: fc.nat(VALID.length),
  removed: fc.nat(12),
  inserted: fc.oneof(fc.constantFrom(...FRAGMENTS), fc.string({ unit: "binary", maxLength: 4 })),
});

const mutated = fc
  .array(edit, { minLength: 1, maxLength: 4 })
  .map((edits) =>
    edits.reduce((text, { at, removed, inserted }) => text.slice(0, at) + inserted + text.slice(at + removed), VALID),
  );

const mutatedBytes = fc
  .array(fc.record({ at: fc.nat(VALID.length - 1), byte: fc.nat(255) }), { minLength: 1, maxLength: 3 })
  .map((changes) => {
    const bytes = new TextEncoder().encode(VALID);
    for (const { at, byte } of changes) bytes[at] = byte;
    return bytes;
  });

const anyFile = fc.oneof(fc.uint8Array({ maxLength: 300 }), yamlish, mutated, mutatedBytes);

const RUNS = { numRuns: 3_000 };

function textsOf(manifest: SkillManifest): readonly string[] {
  const { name, description, license, compatibility, metadata, allowedTools, includes, instructions } = manifest;
  const optional = [license, compatibility].filter((text) => text !== undefined);
  return [name, description, ...optional, ...[...metadata].flat(), ...allowedTools, ...includes, instructions];
}

function expectSound(result: SkillMarkdown): void {
  const errors = result.diagnostics.filter(({ severity }) => severity === "error");
  expect(errors.length > 0).toBe(!result.ok);
  for (const { line, rule, message } of result.diagnostics) {
    expect(Number.isInteger(line) && line >= 1).toBe(true);
    expect(rule).toMatch(/^[a-z]+(-[a-z]+)+$|^encoding$/);
    expect(message).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
  }
  if (!result.ok) return;
  for (const text of textsOf(result.manifest)) expect(text).not.toMatch(FORBIDDEN);
}

test("any bytes give an answer: a manifest with warnings, or at least one error", () => {
  fc.assert(
    fc.property(anyFile, (file) => {
      expectSound(readSkill(file, "strict"));
      expectSound(readSkill(file, "lenient"));
    }),
    RUNS,
  );
});

test("what strict accepts obeys every rule of the specification", () => {
  fc.assert(
    fc.property(fc.oneof(yamlish, mutated), (file) => {
      const result = readSkill(file);
      if (!result.ok) return;
      const { name, description, compatibility } = result.manifest;
      expect(name).toBe("demo-skill");
      expect(isBlank(description)).toBe(false);
      expect(codePointCount(description)).toBeLessThanOrEqual(1_024);
      if (compatibility !== undefined) expect(codePointCount(compatibility)).toBeLessThanOrEqual(500);
      expect(description).toBe(description.trim());
    }),
    RUNS,
  );
});

test("what strict accepts, lenient accepts with the same manifest and findings", () => {
  fc.assert(
    fc.property(fc.oneof(yamlish, mutated), (file) => {
      const strict = readSkill(file);
      if (strict.ok) expect(readSkill(file, "lenient")).toEqual(strict);
    }),
    RUNS,
  );
});

test("both readings find the same things in the same lines, and differ only in severity", () => {
  fc.assert(
    fc.property(anyFile, (file) => {
      const places = (result: SkillMarkdown) => findingsOf(result).map((finding) => finding.replace(/^\w+ /, ""));
      expect(places(readSkill(file, "lenient"))).toEqual(places(readSkill(file, "strict")));
    }),
    RUNS,
  );
});

test("a skill reads the same with LF, CRLF or CR", () => {
  fc.assert(
    fc.property(fc.oneof(yamlish, mutated), fc.constantFrom("\r\n", "\r"), (file, breaks) => {
      const unix = file.replace(/\r\n?/g, "\n");
      expect(readSkill(unix.replaceAll("\n", breaks), "lenient")).toEqual(readSkill(unix, "lenient"));
    }),
    RUNS,
  );
});

test("a quoted value comes back as it was, trimmed", () => {
  const text = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 200 })
    .filter((value) => !isBlank(value) && !FORBIDDEN.test(value));
  fc.assert(
    fc.property(text, text, text, (description, key, value) => {
      const header = `description: ${JSON.stringify(description)}\nmetadata: {? ${JSON.stringify(key)} : ${JSON.stringify(value)}}`;
      const manifest = manifestOf(readSkill(`---\nname: demo-skill\n${header}\n---\n`));
      expect(manifest.description).toBe(description.trim());
      expect([...manifest.metadata]).toEqual([[key, value.trim()]]);
    }),
    RUNS,
  );
});

test("the body is handed on untouched", () => {
  const line = fc.oneof(
    fc.constantFrom("---", "name: other", "```", "", " "),
    fc.string({ unit: "grapheme-composite" }),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), (lines) => {
      const body = lines.filter((text) => !FORBIDDEN.test(text)).join("\n");
      expect(manifestOf(readSkill(`---\nname: demo-skill\ndescription: D.\n---\n${body}`)).instructions).toBe(body);
    }),
    RUNS,
  );
});
