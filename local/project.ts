import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Fault } from "../functions/contract/fault.ts";
import { parseStrictJson } from "../functions/contract/json.ts";
import { type OperatorSettings, parseSettings } from "../functions/contract/settings.ts";

/** The operator's project: the directory of the nearest `cdk.json`, and what its context says. */
export type Project = { readonly root: string; readonly settings: OperatorSettings; readonly skillsRoot: string };

/** From `start` upwards; `fallback` when no directory has a `cdk.json`. */
export function findProjectRoot(start: string, fallback: string): string {
  for (let directory = resolve(start); ; directory = dirname(directory)) {
    if (existsSync(join(directory, "cdk.json"))) return directory;
    if (dirname(directory) === directory) return fallback;
  }
}

/** Throws a `REQUEST_INVALID` that lists every mistake in the settings. */
export function readProject(root: string): Project {
  const parsed = parseStrictJson(readFileSync(join(root, "cdk.json"), "utf8"), { maxDepth: 32 });
  if (!parsed.ok) throw new Fault("REQUEST_INVALID", `cdk.json: ${parsed.fault.message}`);
  const settings = parseSettings(contextOf(parsed.value));
  if (!settings.ok) throw settings.fault;
  return { root, settings: settings.value, skillsRoot: resolve(root, settings.value.skills) };
}

function contextOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || !("context" in value)) return {};
  const { context } = value;
  return typeof context === "object" && context !== null ? Object.fromEntries(Object.entries(context)) : {};
}
