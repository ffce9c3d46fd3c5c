import type { CallableSkill } from "../contract/skill.ts";
import { decodeUtf8 } from "../contract/text.ts";
import type { SkillManifest } from "./skill-manifest.ts";
import { formatDiagnostic, parseSkillMarkdown } from "./skill-md.ts";
import { parseToolJson } from "./tool-json.ts";

/** The two files of a skill that are read: what it says (`SKILL.md`) and what makes it callable (`tool.json`). */

/** Path below the skill -> bytes. */
export type SkillContents = ReadonlyMap<string, Uint8Array>;

/** Longest SKILL.md in bytes; the largest seen in public repositories has 294,426. */
export const MAX_SKILL_MD_BYTES = 512 * 1024;
export const SKILL_MD = "SKILL.md";
export const TOOL_JSON = "tool.json";

type Markdown = { readonly manifest?: SkillManifest; readonly problems: readonly string[] };

/** Strictly; `prefix` is `repository/directory/` and stands in front of every file in a problem. */
export function readMarkdown(prefix: string, contents: SkillContents): Markdown {
  const file = prefix + SKILL_MD;
  const bytes = contents.get(SKILL_MD);
  if (bytes === undefined) return { problems: [`${file} is missing${twinHint(SKILL_MD, contents.keys())}`] };
  const directoryName = prefix.split("/").at(-2) ?? "";
  const parsed = parseSkillMarkdown(bytes, { directoryName, file, reading: "strict", maxBytes: MAX_SKILL_MD_BYTES });
  if (parsed.ok) return { manifest: parsed.manifest, problems: [] };
  return { problems: parsed.diagnostics.map(formatDiagnostic) };
}

type Callable = { readonly callable?: CallableSkill; readonly problems: readonly string[] };

/** No `callable` and no problem for a skill of instructions only. */
export function readCallable(prefix: string, contents: SkillContents, handlers: ReadonlySet<string>): Callable {
  const file = prefix + TOOL_JSON;
  const bytes = contents.get(TOOL_JSON);
  if (bytes === undefined) {
    const hint = twinHint(TOOL_JSON, contents.keys());
    return { problems: hint === "" ? [] : [`${file} is missing${hint}`] };
  }
  const parsed = parseToolJson(bytes, handlers);
  if (!parsed.ok) return { problems: parsed.problems.map((problem) => `${file}: ${problem}`) };
  const { templates: paths, ...definition } = parsed.definition;
  const templates = new Map<string, string>();
  const problems: string[] = [];
  for (const [name, path] of paths) {
    const content = contents.get(path);
    const text = content === undefined ? undefined : decodeUtf8(content)?.replace(/^\uFEFF/, "");
    if (text !== undefined) templates.set(name, text);
    else problems.push(`${file}: /templates/${name}: ${prefix}${path} is ${content ? "not valid UTF-8" : "missing"}`);
  }
  return problems.length > 0 ? { problems } : { callable: { ...definition, templates }, problems };
}

/** A name that differs only in case is found on macOS and Windows, and missing on Linux. */
export function twinHint(name: string, present: Iterable<string>): string {
  const twin = [...present].find((path) => path !== name && path.toLowerCase() === name.toLowerCase());
  return twin === undefined ? "" : `; ${twin} is there, and upper and lower case differ`;
}
