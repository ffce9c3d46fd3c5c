import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Fault, orThrow } from "../functions/contract/fault.ts";
import { parseStrictJson } from "../functions/contract/json.ts";
import { type OperatorSettings, parseSettings } from "../functions/contract/settings.ts";

/** The operator's project: the directory of the nearest `cdk.json`, and what its context and its `mcp.json` say. */
export type Project = {
  readonly root: string;
  readonly settings: OperatorSettings;
  readonly skillsRoot: string;
  /** What the file that declares MCP servers holds, parsed as JSON. */
  readonly mcp: unknown;
};

/** From `start` upwards; `fallback` when no directory has a `cdk.json`. */
export function findProjectRoot(start: string, fallback: string): string {
  for (let directory = resolve(start); ; directory = dirname(directory)) {
    if (existsSync(join(directory, "cdk.json"))) return directory;
    if (dirname(directory) === directory) return fallback;
  }
}

/** Throws a `REQUEST_INVALID` that lists every mistake in the settings. */
export function readProject(root: string): Project {
  const context = contextOf(readJson(root, "cdk.json"));
  const settings = orThrow(parseSettings(context));
  return { root, settings, skillsRoot: resolve(root, settings.skills), mcp: readMcp(root, context, settings) };
}

/** Without such a file no servers are declared; one that the settings name must be there. */
function readMcp(root: string, context: Readonly<Record<string, unknown>>, { mcp }: OperatorSettings): unknown {
  if (context.mcp === undefined && !existsSync(resolve(root, mcp))) return { mcpServers: {} };
  return readJson(root, mcp);
}

function readJson(root: string, name: string): unknown {
  const parsed = parseStrictJson(readText(resolve(root, name)), { maxDepth: 32 });
  if (!parsed.ok) throw new Fault("REQUEST_INVALID", `${name}: ${parsed.fault.message}`);
  return parsed.value;
}

function readText(path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(path));
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const message = missing ? `there is no ${path}; give the project's directory` : `${path} cannot be read`;
    throw new Fault("REQUEST_INVALID", message, { cause: error });
  }
}

/** A context of another shape is refused: read as empty it would approve nothing and not say why. */
function contextOf(value: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new Fault("REQUEST_INVALID", "cdk.json must hold an object");
  const { context } = value;
  if (context === undefined) return {};
  if (!isObject(context)) throw new Fault("REQUEST_INVALID", 'cdk.json: "context" must be an object');
  return context;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
