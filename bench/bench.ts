import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { deflateSync } from "node:zlib";
import { createPdf } from "../functions/handlers/create-pdf.ts";
import { SKILL_HANDLERS } from "../functions/handlers/table.ts";
import { loadRepositories } from "../functions/repository/load.ts";
import { parsePinsText } from "../functions/repository/pins.ts";
import { readTree } from "../functions/repository/tree.ts";
import { measureRatio } from "./ratio.ts";

/** Every figure is a ratio over a yardstick in the same run, so that it means the same on another machine. */

const root = dirname(import.meta.dirname);
const skills = join(root, "skills");
const pins = parsePinsText(readFileSync(join(skills, "pins.json"), "utf8"));
const bytes = Buffer.concat(readTree(skills).files.map(({ content }) => content));
// Prose, since a text that repeats itself flatters the compression that is the yardstick.
const prose = ["README.md", "docs/architecture.md", "docs/skills.md"].map((path) =>
  readFileSync(join(root, path), "utf8"),
);
const body = prose.join("\n").slice(0, 12_000);
const text = Buffer.from(body);

show("read, verify and parse the packaged skills / one SHA-256 of their bytes", () => {
  const load = () => loadRepositories({ root: skills, pins: () => pins, handlers: SKILL_HANDLERS });
  const hash = () => createHash("sha256").update(bytes).digest("hex");
  return measureRatio(load, hash, { rounds: 25, repeats: 10 });
});
show("create_pdf of 12,000 characters / deflate of the same text", () => {
  const make = () => createPdf({ arguments: { body }, skill: undefined, now: 0 });
  return measureRatio(make, () => deflateSync(text), { rounds: 25, repeats: 20 });
});
await import("./skill-graph.ts");
await import("./cold-start.ts");
console.log("\ncost of each dependency at start, if it were imported eagerly");
await import("./dependency-cost.ts");

function show(what: string, measure: () => number): void {
  console.log(`${measure().toFixed(2).padStart(8)}x  ${what}`);
}
