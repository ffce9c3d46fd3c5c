import * as z from "zod";
import { SkillError } from "../contract/fault.ts";
import { parseStrictJson } from "../contract/json.ts";
import { toViolations } from "../contract/violations.ts";
import { inPathOrder } from "./digest.ts";

/**
 * The approved bytes. Pins are compiled into the functions; a pin that stood beside the files it pins would be edited
 * together with them.
 */

const DirectoryName = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/);
const Hex = z.string().regex(/^[0-9a-f]{64}$/, "64 hexadecimal digits expected");

const FilePin = z.strictObject({ path: z.string().min(1).max(300), sha256: Hex, size: z.int().min(0) });
export type FilePin = z.infer<typeof FilePin>;

const SkillPin = z.strictObject({ digest: Hex, files: z.array(FilePin).min(1) });
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
    throw new SkillError(
      `${PINS_FILE}: not a pins file, at ${first?.path || "/"}: ${first?.message}; write it with skillbroker pin`,
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
  if (formatPins(pins) !== text) {
    throw new SkillError(`${PINS_FILE}: not as skillbroker pin writes it, so it was edited; restore it or pin again`);
  }
  return pins;
}

/** The text of `pins.json`: every level in byte order, so that two people pinning the same files get the same text. */
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
