import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SkillError } from "../../../functions/contract/fault.ts";
import { formatPins, PINS_FILE, type Pins, parsePins, parsePinsText } from "../../../functions/repository/pins.ts";
import { readTree } from "../../../functions/repository/tree.ts";
import { findDifferences } from "../../../functions/repository/verify.ts";
import { SHIPPED_SKILLS } from "./skills-on-disk.ts";

const SHIPPED_TEXT = readFileSync(join(SHIPPED_SKILLS, PINS_FILE), "utf8");
const DIGEST = "0123456789abcdef".repeat(4);
const FILE = { path: "SKILL.md", sha256: DIGEST, size: 1 };

/** A pins file with one skill, as a value. */
function pinsFile(skill: object = {}, file: object = {}): object {
  return {
    version: 1,
    repositories: { acme: { demo: { digest: DIGEST, files: [{ ...FILE, ...file }], ...skill } } },
  };
}

function toText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

const hex = fc.stringMatching(/^[0-9a-f]{64}$/);
const name = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,3}[a-z0-9])?$/);
const pins: fc.Arbitrary<Pins> = mapOf(
  mapOf(
    fc.record({
      digest: hex,
      files: fc.uniqueArray(
        fc.record({ path: fc.stringMatching(/^[a-c]{1,2}(\/[A-C0-9]{1,2}){0,2}$/), sha256: hex, size: fc.nat() }),
        { selector: ({ path }) => path, minLength: 1, maxLength: 3 },
      ),
    }),
  ),
);

function mapOf<T>(value: fc.Arbitrary<T>): fc.Arbitrary<ReadonlyMap<string, T>> {
  return fc
    .uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, maxLength: 3 })
    .map((entries) => new Map(entries));
}

function reversed(given: Pins): Pins {
  return new Map(
    [...given]
      .reverse()
      .map(([repository, skills]) => [
        repository,
        new Map([...skills].reverse().map(([skill, pin]) => [skill, { ...pin, files: pin.files.toReversed() }])),
      ]),
  );
}

describe("text", () => {
  test("the shipped pins are written as they are formatted", () => {
    expect(formatPins(parsePinsText(SHIPPED_TEXT))).toBe(SHIPPED_TEXT);
  });

  test("equal pins have one text, whatever order they are in, and it reads back", () => {
    fc.assert(
      fc.property(pins, (given) => {
        const text = formatPins(given);
        expect(formatPins(reversed(given))).toBe(text);
        expect(formatPins(parsePinsText(text))).toBe(text);
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    ["a blank", toText(pinsFile()).replace('"version": 1', '"version":  1')],
    ["another order", toText({ repositories: {}, version: 1 })],
    ["a missing last line feed", toText(pinsFile()).trimEnd()],
    ["a byte-order mark", `\uFEFF${toText(pinsFile())}`],
    ["a number written in another way", toText(pinsFile()).replace('"size": 1', '"size": 1.0')],
    ["an escape", toText(pinsFile()).replace("SKILL", "\\u0053KILL")],
  ])("refuses %s, though the pins are the same", (_, text) => {
    expect(() => parsePinsText(text)).toThrow(SkillError);
  });

  test("says that line endings are the only difference when they are", () => {
    const windows = SHIPPED_TEXT.replaceAll("\n", "\r\n");
    expect(() => parsePinsText(windows)).toThrow(/pins\.json.*line endings/);
    expect(() => parsePinsText(windows.replace('"size": 1', '"size":  1'))).toThrow(/edited/);
  });

  test.each([
    ["a repository", '{"version":1,"repositories":{"acme":{},"acme":{}}}'],
    ["the version", '{"version":1,"version":1,"repositories":{}}'],
  ])("refuses %s that stands twice", (_, text) => {
    expect(() => parsePinsText(text)).toThrow(/duplicate key/);
  });

  test("refuses __proto__ as a name", () => {
    expect(() => parsePinsText('{"version":1,"repositories":{"__proto__":{}}}')).toThrow(SkillError);
  });

  test("pins nothing by the name __proto__, where the file is compiled in as JSON", () => {
    const skill = JSON.stringify(pinsFile()).replace('"acme"', '"__proto__"').replace('"demo"', '"__proto__"');
    expect([...parsePins(JSON.parse(skill))]).toEqual([]);
    expect({}).not.toHaveProperty("digest");
  });

  test.each(["", "{", "null", "[]", '"pins"', "\0", `${"[".repeat(100_000)}`])("refuses %j", (text) => {
    expect(() => parsePinsText(text)).toThrow(SkillError);
  });
});

describe("value", () => {
  test.each([
    ["another version", { ...pinsFile(), version: 2 }],
    ["the version as text", { ...pinsFile(), version: "1" }],
    ["no version", { repositories: {} }],
    ["an unknown field", { ...pinsFile(), approved: true }],
    ["an unknown field of a skill", pinsFile({ note: "x" })],
    ["an unknown field of a file", pinsFile({}, { mode: 420 })],
    ["upper-case digits", pinsFile({ digest: DIGEST.toUpperCase() })],
    ["upper-case digits of a file", pinsFile({}, { sha256: DIGEST.toUpperCase() })],
    ["a short digest", pinsFile({ digest: DIGEST.slice(1) })],
    ["a digest with a line feed", pinsFile({ digest: `${DIGEST}\n` })],
    ["a negative size", pinsFile({}, { size: -1 })],
    ["half a byte", pinsFile({}, { size: 0.5 })],
    ["a skill without files", pinsFile({ files: [] })],
    ["a path that stands twice", pinsFile({ files: [FILE, FILE] })],
    ["an upper-case repository", { version: 1, repositories: { Acme: {} } }],
    ["a repository that leaves the directory", { version: 1, repositories: { "..": {} } }],
    ["an empty name", { version: 1, repositories: { "": {} } }],
  ])("refuses %s", (_, value) => {
    expect(() => parsePins(value)).toThrow(SkillError);
    expect(() => parsePinsText(toText(value))).toThrow(SkillError);
  });

  test.each([
    "../other/SKILL.md",
    "..",
    ".",
    "",
    "/etc/passwd",
    "templates/../../x",
    "templates//x",
    "templates/",
    "./SKILL.md",
    "templates\\x",
    "C:\\x",
    "C:x",
    ".hidden",
    "templates/.hidden",
    "dot.",
    "\u0405KILL.md",
    "a b",
    "a\nb",
    "a\0b",
    `${"a/".repeat(20)}b`,
    "a".repeat(101),
  ])("refuses the path %j and names it", (path) => {
    expect(() => parsePins(pinsFile({}, { path }))).toThrow(SkillError);
    expect(() => parsePins(pinsFile({}, { path }))).toThrow(/\/repositories\/acme\/demo\/files\/0\/path/);
  });

  test("a name cannot reach the terminal unescaped", () => {
    const value = { version: 1, repositories: { "\u001b[2J\u202e": {} } };
    expect(() => parsePins(value)).toThrow(/\\u\{001b\}/);
    expect(() => parsePins(value)).not.toThrow(/[\u001b\u202e]/);
  });
});

/** Every text that is one byte away: another byte, a byte that is no ASCII, gone, doubled. */
function* oneByteAway(text: string): Generator<string> {
  const bytes = Buffer.from(text);
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes.subarray(index, index + 1);
    const [before, after] = [bytes.subarray(0, index), bytes.subarray(index + 1)];
    for (const mask of [0x01, 0x80]) {
      yield Buffer.concat([before, Buffer.from([(byte[0] ?? 0) ^ mask]), after]).toString("utf8");
    }
    yield Buffer.concat([before, after]).toString("utf8");
    yield Buffer.concat([before, byte, byte, after]).toString("utf8");
  }
}

function attempt(parse: () => Pins): Pins | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof SkillError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

describe("one byte of the shipped pins.json", () => {
  const tree = readTree(SHIPPED_SKILLS);
  const shipped = parsePinsText(SHIPPED_TEXT);

  test("cannot change without a refusal", () => {
    expect(findDifferences(tree, shipped)).toEqual([]);
    for (const text of oneByteAway(SHIPPED_TEXT)) {
      const parsed = attempt(() => parsePinsText(text));
      if (text !== SHIPPED_TEXT && parsed && findDifferences(tree, parsed).length === 0) {
        expect.fail(`accepted: ${text}`);
      }
    }
  });

  test("cannot change what is approved without a refusal, where the file is compiled in as JSON", () => {
    for (const text of oneByteAway(SHIPPED_TEXT)) {
      const parsed = attempt(() => parsePins(JSON.parse(text)));
      if (parsed && findDifferences(tree, parsed).length === 0) expect(parsed).toEqual(shipped);
    }
  });
});
