import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ENTRY_POINTS, FUNCTION_NAMES } from "../../../cdk/entry-points.ts";

/** Sources like those of the functions, of a few lines each. */

const PINS = 'import pins from "../skills/pins.json" with { type: "json" };\nconsole.log(pins);\n';
const APPROVALS = 'import approvals from "./approvals.json" with { type: "json" };\nconsole.log(approvals);\n';
export const SERVERS = 'import servers from "../mcp.json" with { type: "json" };\nconsole.log(servers);\n';
export const LATER = 'export const handler = async () => (await import("./later.ts")).later;\n';

/** Sources that import what those of the service do; `lines` are added to each of them. */
export function writeSources(root: string, lines: string): void {
  mkdirSync(join(root, "functions"), { recursive: true });
  for (const name of FUNCTION_NAMES) {
    const { source, loadsSkills } = ENTRY_POINTS[name];
    const servers = name === "dead-jobs" ? "" : SERVERS;
    writeFileSync(join(root, source), (loadsSkills ? PINS + APPROVALS : "") + servers + lines);
  }
  writeFileSync(join(root, "functions/later.ts"), 'export const later = "read when it is needed";\n');
}
