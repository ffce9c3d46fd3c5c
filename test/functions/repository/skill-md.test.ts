import { describe, expect, test } from "vitest";
import { formatDiagnostic, parseSkillMarkdown } from "../../../functions/repository/skill-md.ts";
import { fileWith, findingsOf, manifestOf, messagesOf, readSkill, validFileWith } from "./read-skill.ts";

const NAME = "name: demo-skill";
const DESCRIPTION = "description: Says hello.";

/** More than a text of this many code points, each of them two UTF-16 units. */
const smiles = (count: number) => "\u{1f600}".repeat(count);

const longBody = (lines: number) => `---\n${NAME}\n${DESCRIPTION}\n---\n${"x\n".repeat(lines)}`;

test("reads every field of the specification", () => {
  const file = fileWith(
    NAME,
    DESCRIPTION,
    "license: MIT",
    "compatibility: Needs git",
    "metadata:",
    "  version: 1.0",
    "  includes: base-style  other-style",
    "allowed-tools: Bash(git:*) Read",
  );
  const manifest = manifestOf(readSkill(file));
  expect(manifest).toEqual({
    name: "demo-skill",
    description: "Says hello.",
    license: "MIT",
    compatibility: "Needs git",
    metadata: new Map([
      ["version", "1.0"],
      ["includes", "base-style  other-style"],
    ]),
    allowedTools: ["Bash(git:*)", "Read"],
    includes: ["base-style", "other-style"],
    instructions: "# Body\nText.\n",
  });
});

test("leaves out optional fields that are absent or empty", () => {
  for (const file of [validFileWith(), validFileWith("license:", "allowed-tools:", "metadata: {}")]) {
    expect(manifestOf(readSkill(file))).toEqual({
      name: "demo-skill",
      description: "Says hello.",
      metadata: new Map(),
      allowedTools: [],
      includes: [],
      instructions: "# Body\nText.\n",
    });
  }
});

test("reports all violations together, in the order of lines", () => {
  const file = fileWith(
    "version: 2",
    "name: Demo--Skill",
    "compatibility: ''",
    "allowed-tools: [Read]",
    "metadata: {a: [b]}",
    "argument-hint: x",
  );
  expect(findingsOf(readSkill(file))).toEqual([
    "error 1 description-required",
    "error 2 unknown-field",
    "error 3 name-characters",
    "error 3 name-hyphens",
    "error 3 name-directory",
    "error 4 compatibility-length",
    "error 5 allowed-tools-text",
    "error 6 metadata-text",
    "error 7 unknown-field",
  ]);
});

test("a refusal keeps the warnings, and a warning alone does not refuse", () => {
  const file = validFileWith("version: 1").replace("# Body\nText.\n", "");
  expect(findingsOf(readSkill(file))).toEqual(["error 4 unknown-field", "warning 6 body-empty"]);
  const lenient = readSkill(file, "lenient");
  expect(lenient.ok).toBe(true);
  expect(findingsOf(lenient)).toEqual(["warning 4 unknown-field", "warning 6 body-empty"]);
});

describe("name", () => {
  test.each(["a", "7", "a-b-c", "x".repeat(64), "1e3", "constructor"])("accepts %s", (name) => {
    expect(manifestOf(readSkill(fileWith(`name: ${name}`, DESCRIPTION), "strict", name)).name).toBe(name);
  });

  test("is trimmed", () => {
    expect(manifestOf(readSkill(fileWith("name: |", "  demo-skill", DESCRIPTION))).name).toBe("demo-skill");
    expect(manifestOf(readSkill(fileWith('name: " demo-skill "', DESCRIPTION))).name).toBe("demo-skill");
  });

  test.each([
    ["65 characters", "x".repeat(65), "name-length"],
    ["a capital letter", "Demo", "name-characters"],
    ["a space", "demo skill", "name-characters"],
    ["an underscore", "demo_skill", "name-characters"],
    ["a dot", "demo.v2", "name-characters"],
    ["a colon", "pack:demo", "name-characters"],
    ["a leading hyphen", "-demo", "name-hyphens"],
    ["a trailing hyphen", "demo-", "name-hyphens"],
    ["a double hyphen", "demo--skill", "name-hyphens"],
    ["only a hyphen", "'-'", "name-hyphens"],
  ])("refuses %s in strict", (_, name, rule) => {
    const plain = name.replaceAll("'", "");
    const result = readSkill(fileWith(`name: ${name}`, DESCRIPTION), "strict", plain);
    expect(findingsOf(result)).toEqual([`error 2 ${rule}`]);
  });

  test.each([
    ["65 characters", "x".repeat(65)],
    ["a capital letter and a space", "Demo Skill"],
    ["a colon, a dot and an underscore", "pack:demo_v1.2"],
    ["a trailing hyphen", "demo-"],
  ])("accepts %s in lenient, with a warning", (_, name) => {
    const result = readSkill(fileWith(`name: ${name}`, DESCRIPTION), "lenient", name);
    expect(manifestOf(result).name).toBe(name);
    expect(result.diagnostics).toHaveLength(1);
  });

  test.each([
    ["a path upwards", "../demo"],
    ["a directory", "a/b"],
    ["a backslash", "a\\b"],
    ["a dot alone", "."],
    ["a full-width look-alike", "\uff44emo"],
    ["a Cyrillic look-alike", "dem\u043e"],
    ["an accent", "caf\u00e9"],
    ["a zero width space", "de\u200bmo"],
    ["a line break", '"a\\nb"'],
  ])("refuses %s in both readings", (_, name) => {
    for (const reading of ["strict", "lenient"] as const) {
      const result = readSkill(fileWith(`name: ${name}`, DESCRIPTION), reading);
      expect(findingsOf(result)).toContain("error 2 name-characters");
    }
  });

  test.each([
    ["left out", [], "error 1 name-required"],
    ["empty", ["name:"], "error 2 name-required"],
    ["blank", ["name: ' '"], "error 2 name-required"],
    ["only invisible characters", ['name: "\\u200b"'], "error 2 name-required"],
    ["a list", ["name: [demo-skill]"], "error 2 name-text"],
    ["a mapping", ["name: {demo-skill: x}"], "error 2 name-text"],
  ])("refuses a name that is %s, in both readings", (_, lines, finding) => {
    for (const reading of ["strict", "lenient"] as const) {
      const result = readSkill(fileWith(...lines, DESCRIPTION), reading);
      expect(findingsOf(result).filter((found) => found.startsWith("error"))).toEqual([finding]);
    }
  });

  test("must equal the directory name; the message names both", () => {
    const file = fileWith("name: vendor-best-practices", DESCRIPTION);
    const strict = readSkill(file, "strict", "best-practices");
    expect(findingsOf(strict)).toEqual(["error 2 name-directory"]);
    expect(messagesOf(strict)).toContain('"vendor-best-practices"');
    expect(messagesOf(strict)).toContain('"best-practices"');
    const lenient = readSkill(file, "lenient", "best-practices");
    expect(findingsOf(lenient)).toEqual(["warning 2 name-directory"]);
    expect(manifestOf(lenient).name).toBe("vendor-best-practices");
  });

  test("is compared with the directory name as it is, case included", () => {
    expect(findingsOf(readSkill(validFileWith(), "strict", "Demo-Skill"))).toEqual(["error 2 name-directory"]);
  });
});

describe("description", () => {
  test("may have 1,024 code points, not 1,025; UTF-16 units do not count", () => {
    expect(readSkill(fileWith(NAME, `description: "${smiles(1_024)}"`)).ok).toBe(true);
    const long = fileWith(NAME, `description: "${smiles(1_025)}"`);
    expect(findingsOf(readSkill(long))).toEqual(["error 3 description-length"]);
    expect(messagesOf(readSkill(long))).toContain("1025");
    const lenient = readSkill(long, "lenient");
    expect(findingsOf(lenient)).toEqual(["warning 3 description-length"]);
    expect(manifestOf(lenient).description).toBe(smiles(1_025));
  });

  test("is measured after trimming", () => {
    expect(readSkill(fileWith(NAME, `description: "  ${"x".repeat(1_024)}  "`)).ok).toBe(true);
  });

  test.each([
    ["left out", [], "error 1 description-required"],
    ["empty", ["description:"], "error 3 description-required"],
    ["blank", ['description: " \\t\\n"'], "error 3 description-required"],
    ["an empty block", ["description: |"], "error 3 description-required"],
    ["only a zero width space", ['description: "\\u200b"'], "error 3 description-required"],
    ["only joiners and a byte-order mark", ['description: "\\u200d\\ufeff"'], "error 3 description-required"],
    ["only a comment", ["description: #1 tool"], "error 3 description-required"],
    ["a list", ["description:", "  - D."], "error 3 description-text"],
    ["a mapping", ["description:", "  Use when: asked"], "error 3 description-text"],
  ])("refuses a description that is %s, in both readings", (_, lines, finding) => {
    for (const reading of ["strict", "lenient"] as const) {
      expect(findingsOf(readSkill(fileWith(NAME, ...lines), reading))).toContain(finding);
    }
  });
});

describe("license and compatibility", () => {
  test("compatibility may have 1 to 500 code points", () => {
    for (const text of ["x", smiles(500)]) {
      expect(manifestOf(readSkill(validFileWith(`compatibility: "${text}"`))).compatibility).toBe(text);
    }
    for (const text of ["", " ", "\\u200b", smiles(501)]) {
      const file = validFileWith(`compatibility: "${text}"`);
      expect(findingsOf(readSkill(file))).toContain("error 4 compatibility-length");
      expect(findingsOf(readSkill(file, "lenient"))).toContain("warning 4 compatibility-length");
    }
  });

  test.each(["license", "compatibility"] as const)("%s must be text; a lenient reading leaves it out", (field) => {
    for (const value of ["[MIT]", "{a: b}"]) {
      const file = validFileWith(`${field}: ${value}`);
      expect(findingsOf(readSkill(file))).toEqual([`error 4 ${field}-text`]);
      const lenient = readSkill(file, "lenient");
      expect(findingsOf(lenient)).toEqual([`warning 4 ${field}-text`]);
      expect(manifestOf(lenient)).not.toHaveProperty(field);
    }
  });
});

describe("metadata", () => {
  test("keeps the names of object members as keys like any other", () => {
    const manifest = manifestOf(
      readSkill(validFileWith("metadata:", "  constructor: x", "  __proto__: y", "  hasOwnProperty: z")),
    );
    expect([...manifest.metadata]).toEqual([
      ["constructor", "x"],
      ["__proto__", "y"],
      ["hasOwnProperty", "z"],
    ]);
    expect(manifest.metadata.get("toString")).toBeUndefined();
    expect(Object.hasOwn(Object.prototype, "isAdmin")).toBe(false);
  });

  test.each([
    ["a list", "  tags: [a, b]"],
    ["a mapping", "  tags:\n    a: b"],
  ])("refuses a value that is %s, naming its key; a lenient reading drops it", (_, lines) => {
    const file = validFileWith("metadata:", "  version: 1.0", lines);
    expect(findingsOf(readSkill(file))).toEqual(["error 6 metadata-text"]);
    expect(messagesOf(readSkill(file))).toContain('"tags"');
    const lenient = readSkill(file, "lenient");
    expect(findingsOf(lenient)).toEqual(["warning 6 metadata-text"]);
    expect([...manifestOf(lenient).metadata]).toEqual([["version", "1.0"]]);
  });

  test.each([
    ["text", "metadata: x"],
    ["empty", "metadata:"],
    ["a list", "metadata: [a]"],
  ])("refuses metadata that is %s; a lenient reading drops it", (_, line) => {
    expect(findingsOf(readSkill(validFileWith(line)))).toEqual(["error 4 metadata-mapping"]);
    const lenient = readSkill(validFileWith(line), "lenient");
    expect(findingsOf(lenient)).toEqual(["warning 4 metadata-mapping"]);
    expect(manifestOf(lenient).metadata.size).toBe(0);
  });

  test("an includes list is not read as names", () => {
    const file = validFileWith("metadata:", "  includes: [a, b]");
    expect(readSkill(file).ok).toBe(false);
    expect(manifestOf(readSkill(file, "lenient")).includes).toEqual([]);
  });

  test("includes are split on any white space", () => {
    const file = validFileWith("metadata:", "  includes: |", "    a", "    b\tc");
    expect(manifestOf(readSkill(file)).includes).toEqual(["a", "b", "c"]);
  });
});

describe("allowed-tools", () => {
  test.each([
    ["Read", ["Read"]],
    ["Read  Write\tBash(git:*)", ["Read", "Write", "Bash(git:*)"]],
    ["Bash(git add:*) Read", ["Bash(git add:*)", "Read"]],
    ["Bash(git:*, x) Read", ["Bash(git:*, x)", "Read"]],
    ["Bash(a (b, c) d) Read", ["Bash(a (b, c) d)", "Read"]],
    ["github/search_issues pdf@1.0.0", ["github/search_issues", "pdf@1.0.0"]],
    ["'*'", ["*"]],
    ["''", []],
  ])("reads %s in both readings without a finding", (text, tools) => {
    for (const reading of ["strict", "lenient"] as const) {
      const result = readSkill(validFileWith(`allowed-tools: ${text}`), reading);
      expect(manifestOf(result).allowedTools).toEqual(tools);
      expect(findingsOf(result)).toEqual([]);
    }
  });

  test.each([
    ["Read, Write", ["Read", "Write"]],
    ["Read,Write,", ["Read", "Write"]],
    ["Bash(git:*, x),Read", ["Bash(git:*, x)", "Read"]],
  ])("refuses the commas of %s with advice; a lenient reading splits there", (text, tools) => {
    const file = validFileWith(`allowed-tools: ${text}`);
    expect(findingsOf(readSkill(file))).toEqual(["error 4 allowed-tools-comma"]);
    expect(messagesOf(readSkill(file))).toContain("separated by spaces");
    const lenient = readSkill(file, "lenient");
    expect(findingsOf(lenient)).toEqual(["warning 4 allowed-tools-comma"]);
    expect(manifestOf(lenient).allowedTools).toEqual(tools);
  });

  test.each([
    ["in brackets", ["allowed-tools: [Read, Bash(git:*)]"]],
    ["with dashes", ["allowed-tools:", "  - Read", "  - Bash(git:*)"]],
    ["with dashes that are not indented", ["allowed-tools:", "- Read", "- Bash(git:*)"]],
  ])("refuses a list %s; a lenient reading takes it", (_, lines) => {
    expect(findingsOf(readSkill(validFileWith(...lines)))).toEqual(["error 4 allowed-tools-text"]);
    const lenient = readSkill(validFileWith(...lines), "lenient");
    expect(findingsOf(lenient)).toEqual(["warning 4 allowed-tools-text"]);
    expect(manifestOf(lenient).allowedTools).toEqual(["Read", "Bash(git:*)"]);
  });

  test.each([
    ["a mapping", "allowed-tools: {Read: true}", "allowed-tools-text"],
    ["a list in a list", "allowed-tools: [Read, [Write]]", "allowed-tools-text"],
    ["a parenthesis that is not closed", "allowed-tools: Bash(git Read", "allowed-tools-parenthesis"],
    ["a parenthesis that is not opened", "allowed-tools: Bash)git( Read", "allowed-tools-parenthesis"],
    ["a bracketed pattern cut at its comma", "allowed-tools: [Bash(a, b)]", "allowed-tools-parenthesis"],
  ])("refuses %s in both readings, as a restriction could be lost", (_, line, rule) => {
    for (const reading of ["strict", "lenient"] as const) {
      expect(findingsOf(readSkill(validFileWith(line), reading))).toContain(`error 4 ${rule}`);
    }
  });
});

describe("unknown fields", () => {
  const file = validFileWith(
    'version: "2.0"',
    'argument-hint: "[x]"',
    "requires: [a]",
    "__proto__:",
    "  isAdmin: true",
  );

  test("are each a violation of their own that names the field", () => {
    const result = readSkill(file);
    expect(findingsOf(result)).toEqual([4, 5, 6, 7].map((line) => `error ${line} unknown-field`));
    for (const name of ["version", "argument-hint", "requires", "__proto__"]) {
      expect(messagesOf(result)).toContain(`unknown field "${name}"`);
    }
  });

  test("are never interpreted in a lenient reading", () => {
    const result = readSkill(file, "lenient");
    expect(findingsOf(result)).toEqual([4, 5, 6, 7].map((line) => `warning ${line} unknown-field`));
    expect(manifestOf(result)).toEqual(manifestOf(readSkill(validFileWith())));
    expect(Object.hasOwn(Object.prototype, "isAdmin")).toBe(false);
  });

  test.each(["constructor", "toString", "hasOwnProperty", '""', "'name '", '"\\tname"'])("%s is one of them", (key) => {
    expect(findingsOf(readSkill(validFileWith(`${key}: x`)))).toEqual(["error 4 unknown-field"]);
  });

  test.each([
    ["allowed_tools", "allowed-tools"],
    ["License", "license"],
    ["Allowed_Tools", "allowed-tools"],
  ])("%s is answered with the name that was meant, but not read as it", (key, meant) => {
    const result = readSkill(validFileWith(`${key}: x`), "lenient");
    expect(messagesOf(result)).toContain(`did you mean "${meant}"?`);
    expect(manifestOf(result)).toEqual(manifestOf(readSkill(validFileWith())));
  });
});

describe("what public skills break most, in small", () => {
  test.each([
    ["a package field, used by one vendor's installer", validFileWith("package: demo"), ["4 unknown-field"]],
    ["a type field", validFileWith("type: workflow"), ["4 unknown-field"]],
    [
      "fields of one client",
      validFileWith("effort: high", "disable-model-invocation: true", 'argument-hint: "[x]"'),
      ["4 unknown-field", "5 unknown-field", "6 unknown-field"],
    ],
    ["a name with the vendor in front", fileWith("name: vendor-demo-skill", DESCRIPTION), ["2 name-directory"]],
    ["tools as a list", validFileWith("allowed-tools:", "  - Bash", "  - Read"), ["4 allowed-tools-text"]],
  ])("%s: refused in strict, a warning in lenient", (_, file, findings) => {
    expect(findingsOf(readSkill(file))).toEqual(findings.map((finding) => `error ${finding}`));
    const lenient = readSkill(file, "lenient");
    expect(lenient.ok).toBe(true);
    expect(findingsOf(lenient)).toEqual(findings.map((finding) => `warning ${finding}`));
  });
});

describe("body", () => {
  test("may have 500 lines; one more is a warning at that line", () => {
    expect(findingsOf(readSkill(longBody(500)))).toEqual([]);
    const result = readSkill(longBody(501));
    expect(result.ok).toBe(true);
    expect(findingsOf(result)).toEqual(["warning 505 body-lines"]);
    expect(messagesOf(result)).toContain("501 lines");
  });

  test.each(["", "\n", " \n\u200b\n"])("that shows nothing is a warning", (body) => {
    const result = readSkill(validFileWith().replace("# Body\nText.\n", body));
    expect(findingsOf(result)).toContain("warning 5 body-empty");
    expect(manifestOf(result).instructions).toBe(body);
  });
});

test("a diagnostic is one line with file, line, rule and message", () => {
  const diagnostic = { file: "status-update/SKILL.md", line: 3, rule: "name-directory", message: "x" } as const;
  expect(formatDiagnostic({ ...diagnostic, severity: "error" })).toBe("status-update/SKILL.md:3: name-directory: x");
  expect(formatDiagnostic({ ...diagnostic, severity: "warning" })).toBe(
    "status-update/SKILL.md:3: warning: name-directory: x",
  );
});

test("diagnostics carry the file as the caller named it", () => {
  const options = { directoryName: "a", file: "skills/a/SKILL.md", reading: "strict", maxBytes: 10 } as const;
  const [diagnostic] = parseSkillMarkdown(new Uint8Array(), options).diagnostics;
  expect(diagnostic).toMatchObject({ file: "skills/a/SKILL.md", severity: "error", line: 1 });
});
