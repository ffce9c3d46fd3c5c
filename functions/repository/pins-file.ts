import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Fault, SkillError } from "../contract/fault.ts";
import { PINS_FILE, type Pins, parsePinsText } from "./pins.ts";

/**
 * The pins beside the repositories below `root`, for who is at the sources: a deployed function has them compiled in.
 * Throws `SkillError` when the file is missing or not as `skillbroker pin` writes it.
 */
export function readPinsFile(root: string): Pins {
  try {
    return parsePinsText(readFileSync(join(root, PINS_FILE), "utf8"));
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new SkillError(`${PINS_FILE} cannot be read; write it with skillbroker pin`, { cause: error });
  }
}
