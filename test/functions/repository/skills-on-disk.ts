import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { type LoadOptions, loadRepositories, type RepositoryStatus } from "../../../functions/repository/load.ts";
import { pinsOf } from "../../../functions/repository/pin.ts";
import { formatPins, PINS_FILE, type Pins, parsePinsText } from "../../../functions/repository/pins.ts";
import { readTree } from "../../../functions/repository/tree.ts";

/** The skills that the project ships. */
export const SHIPPED_SKILLS = join(import.meta.dirname, "../../../skills");

export const HANDLERS: ReadonlySet<string> = new Set(["markdown_document", "data_table", "calendar_event"]);

export type Files = Readonly<Record<string, string | Uint8Array>>;

/** A new directory, removed when the test is over. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "skillbroker-test-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function writeFiles(root: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

/** A root with these files, pinned as they are. */
export function pinnedRoot(files: Files): string {
  const root = temporaryDirectory();
  writeFiles(root, files);
  pinAsIs(root);
  return root;
}

/** Writes the pins of whatever is there, without asking whether it would load. */
export function pinAsIs(root: string): void {
  writeFileSync(join(root, PINS_FILE), formatPins(pinsOf(readTree(root))));
}

export function copyOfShippedSkills(): string {
  const root = temporaryDirectory();
  cpSync(SHIPPED_SKILLS, root, { recursive: true });
  return root;
}

export function pinsAt(root: string): Pins {
  return parsePinsText(readFileSync(join(root, PINS_FILE), "utf8"));
}

export function load(root: string, options: Partial<LoadOptions> = {}): readonly RepositoryStatus[] {
  return loadRepositories({ root, pins: () => pinsAt(root), handlers: HANDLERS, ...options });
}

/** Every reason of every refused repository. */
export function refusals(root: string, options: Partial<LoadOptions> = {}): readonly string[] {
  return load(root, options).flatMap((status) => (status.status === "refused" ? status.reasons : []));
}

/** `builtin loaded`, `acme refused`. */
export function statusesOf(root: string, options: Partial<LoadOptions> = {}): readonly string[] {
  return load(root, options).map(({ name, status }) => `${name} ${status}`);
}

export function skillMd(name: string, ...header: readonly string[]): string {
  return ["---", `name: ${name}`, `description: Makes ${name}.`, ...header, "---", "# Body", "Text.", ""].join("\n");
}

export function toolJson(changes: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    id: "demo",
    version: "1",
    handler: "data_table",
    input_schema: { type: "object", properties: {} },
    ...changes,
  });
}

/** A repository that loads: one callable skill with a template. */
export const DEMO: Files = {
  "acme/demo/SKILL.md": skillMd("demo"),
  "acme/demo/tool.json": toolJson({ templates: { document: "templates/document.md" } }),
  "acme/demo/templates/document.md": "Hello {{name}}\n",
};
