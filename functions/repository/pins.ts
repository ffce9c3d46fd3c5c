import * as z from "zod";
import { SkillError } from "../contract/fault.ts";
import { parseStrictJson } from "../contract/json.ts";
import { quoted, toVisible } from "../contract/printable.ts";
import { NAME_PATTERN } from "../contract/skill.ts";
import { toViolations } from "../contract/violations.ts";
import { inPathOrder } from "./digest.ts";
import { isSkillPath, SEGMENT_RULE } from "./skill-path.ts";

/**
 * The approved bytes. Pins are compiled into the functions; a pin that stood beside the files it pins would be edited
 * together with them.
 */

/** Name of a repository or of a skill's directory. */
export const DIRECTORY_NAME = new RegExp(`^${NAME_PATTERN}$`);

/** What was got stands in the message; without it, one wrong digit among thousands cannot be found. */
function got({ input }: { readonly input?: unknown }): string {
  return `got ${quoted(String(input))}`;
}

const DirectoryName = z.string().regex(DIRECTORY_NAME);
const Hex = z.string().regex(/^[0-9a-f]{64}$/, { error: (issue) => `64 digits of 0-9 a-f wanted, ${got(issue)}` });
const SkillPath = z.string().refine(isSkillPath, {
  error: (issue) => `a path below the skill wanted, segments of ${SEGMENT_RULE}; ${got(issue)}`,
});

const FilePin = z.strictObject({ path: SkillPath, sha256: Hex, size: z.int().min(0) });
export type FilePin = z.infer<typeof FilePin>;

/** Of two pins for one path, a reviewer and a program could take different ones. */
const FilePins = z
  .array(FilePin)
  .min(1)
  .refine(
    (files) => new Set(files.map(({ path }) => path)).size === files.length,
    "each path once wanted, got one twice",
  );

const SkillPin = z.strictObject({ digest: Hex, files: FilePins });
export type SkillPin = z.infer<typeof SkillPin>;

/** `pins.json`: repository name -> skill directory -> digest and files. */
const PinsFile = z.strictObject({
  version: z.literal(1),
  repositories: z.record(DirectoryName, z.record(DirectoryName, SkillPin)),
});

export type RepositoryPins = ReadonlyMap<string, SkillPin>;
export type Pins = ReadonlyMap<string, RepositoryPins>;

/** Name of the file, beside the repositories. */
export const PINS_FILE = "pins.json";
const MAX_DEPTH = 8;

/** Throws `SkillError` when the value is not a pins file; nothing is ever used unpinned. */
export function parsePins(value: unknown): Pins {
  const parsed = PinsFile.safeParse(value);
  if (!parsed.success) {
    const [first] = toViolations(parsed.error);
    const where = toVisible(first?.path || "/");
    throw new SkillError(
      `${PINS_FILE}: not a pins file, at ${where}: ${first?.message}; write it with skillbroker pin`,
    );
  }
  const repositories = Object.entries(parsed.data.repositories);
  return new Map(repositories.map(([name, skills]) => [name, new Map(Object.entries(skills))]));
}

/**
 * As {@link parsePins}, from the file's text, which must be exactly what {@link formatPins} writes: a file that was
 * edited by hand says so even where the edit changes no pin.
 */
export function parsePinsText(text: string): Pins {
  const parsed = parseStrictJson(text, { maxDepth: MAX_DEPTH });
  if (!parsed.ok) throw new SkillError(`${PINS_FILE}: ${parsed.fault.message}; write it with skillbroker pin`);
  const pins = parsePins(parsed.value);
  const written = formatPins(pins);
  if (text === written) return pins;
  const reason =
    text.replaceAll("\r\n", "\n") === written
      ? "differs only in line endings (CRLF or LF) from what skillbroker pin wrote; check .gitattributes"
      : "not as skillbroker pin writes it, so it was edited; restore it or pin again";
  throw new SkillError(`${PINS_FILE}: ${reason}`);
}

/** The text of `pins.json`: one order at every level, so that two people pinning the same files get the same text. */
export function formatPins(pins: Pins): string {
  const repositories = sortedEntries(pins).map(([repository, skills]) => [
    repository,
    Object.fromEntries(
      sortedEntries(skills).map(([skill, { digest, files }]) => [
        skill,
        { digest, files: inPathOrder(files).map(({ path, sha256, size }) => ({ path, sha256, size })) },
      ]),
    ),
  ]);
  return `${JSON.stringify({ version: 1, repositories: Object.fromEntries(repositories) }, undefined, 2)}\n`;
}

function sortedEntries<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}
