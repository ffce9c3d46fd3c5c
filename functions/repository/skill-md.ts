/**
 * SKILL.md as the Agent Skills specification has it (agentskills/agentskills at 69ef37e), in two readings.
 * Strict, for a pinned repository: every rule, every violation, reported together. Lenient, for skills of others: what
 * breaks a rule but has one meaning is accepted with a warning; what two programs could read differently is refused.
 * A field that the specification does not know is never interpreted, or a skill could grant itself something.
 */

import { codePointCount, isBlank } from "../contract/text.ts";
import {
  decodeText,
  type Fields,
  type FieldValue,
  type Finding,
  type Grade,
  type Report,
  readFields,
  reportInvisibles,
  shown,
  splitFrontmatter,
} from "./frontmatter.ts";

/** What a SKILL.md says. Texts are trimmed and hold neither U+FEFF nor carriage returns. */
export type SkillManifest = {
  /** Identity of the skill; in a strict reading also the name of its directory. */
  readonly name: string;
  readonly description: string;
  readonly license?: string;
  readonly compatibility?: string;
  /** Every scalar as text: `version: 1.0` is "1.0". */
  readonly metadata: ReadonlyMap<string, string>;
  /** In the order of the file; `Bash(git add:*, x)` is one of them. */
  readonly allowedTools: readonly string[];
  /** `metadata.includes`, split on white space. */
  readonly includes: readonly string[];
  /** The body below the second fence, line breaks as `\n`. */
  readonly instructions: string;
};

/** `file` as given by the caller; `line` counts from 1; `rule` is a stable kebab-case id. */
export type Diagnostic = {
  readonly severity: "error" | "warning";
  readonly file: string;
  readonly line: number;
  readonly rule: string;
  readonly message: string;
};

export type SkillMarkdownOptions = {
  readonly directoryName: string;
  /** Shown in diagnostics, such as "status-update/SKILL.md". */
  readonly file: string;
  readonly reading: "strict" | "lenient";
  readonly maxBytes: number;
};

/** Accepted: warnings only. Refused: at least one error, and the warnings with it. Both in the order of lines. */
export type SkillMarkdown =
  | { readonly ok: true; readonly manifest: SkillManifest; readonly diagnostics: readonly Diagnostic[] }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] };

const MAX_NAME_CODE_POINTS = 64;
const MAX_DESCRIPTION_CODE_POINTS = 1_024;
const MAX_COMPATIBILITY_CODE_POINTS = 500;
const MAX_ADVISED_BODY_LINES = 500;

const FIELD_NAMES: readonly string[] = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/** Reads a SKILL.md of any bytes; never throws. The case of the file's own name is the loader's matter. */
export function parseSkillMarkdown(bytes: Uint8Array, options: SkillMarkdownOptions): SkillMarkdown {
  const findings: Finding[] = [];
  const manifest = readManifest(bytes, options, (finding) => findings.push(finding));
  const diagnostics = findings
    .map((finding) => toDiagnostic(finding, options))
    .toSorted((first, second) => first.line - second.line);
  const refused = diagnostics.some(({ severity }) => severity === "error");
  return manifest === undefined || refused ? { ok: false, diagnostics } : { ok: true, manifest, diagnostics };
}

/** `status-update/SKILL.md:3: name-directory: ...`, as compilers write it; a warning says so. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { severity, file, line, rule, message } = diagnostic;
  return `${file}:${line}: ${severity === "warning" ? "warning: " : ""}${rule}: ${message}`;
}

function toDiagnostic(finding: Finding, { file, reading }: SkillMarkdownOptions): Diagnostic {
  const { grade, line, rule, message } = finding;
  const refused = grade === "refused" || (grade === "rule" && reading === "strict");
  return { severity: refused ? "error" : "warning", file, line, rule, message };
}

function readManifest(bytes: Uint8Array, options: SkillMarkdownOptions, report: Report): SkillManifest | undefined {
  const text = decodeText(bytes, options.maxBytes, report);
  const sections = text === undefined ? undefined : splitFrontmatter(text, report);
  if (sections === undefined) return undefined;
  reportInvisibles(sections, report);
  const instructions = sections.body.replaceAll("\uFEFF", "");
  reportBody(instructions, sections.bodyLine, report);
  const fields = readFields(sections.header, report);
  return fields === undefined ? undefined : toManifest(fields, instructions, { ...options, report });
}

type FieldContext = SkillMarkdownOptions & { readonly report: Report };

function toManifest(fields: Fields, instructions: string, context: FieldContext): SkillManifest | undefined {
  const { report } = context;
  reportUnknown(fields, report);
  const name = readName(fields.get("name"), context);
  const description = readDescription(fields.get("description"), report);
  const license = readText(fields.get("license"), { key: "license", grade: "rule", report });
  const compatibility = readCompatibility(fields.get("compatibility"), report);
  const metadata = readMetadata(fields.get("metadata"), report);
  const allowedTools = readAllowedTools(fields.get("allowed-tools"), report);
  if (name === undefined || description === undefined) return undefined;
  return {
    name,
    description,
    ...(license && { license }),
    ...(compatibility && { compatibility }),
    metadata,
    allowedTools,
    includes: words(metadata.get("includes") ?? ""),
    instructions,
  };
}

function reportBody(instructions: string, bodyLine: number, report: Report): void {
  if (isBlank(instructions)) {
    const message = "nothing follows the frontmatter; a model is given no instructions";
    report({ grade: "advice", line: bodyLine, rule: "body-empty", message });
  }
  const count = instructions.replace(/\n$/, "").split("\n").length;
  if (count <= MAX_ADVISED_BODY_LINES) return;
  const message = `body has ${count} lines; the advice is at most ${MAX_ADVISED_BODY_LINES}, the rest in files beside it`;
  report({ grade: "advice", line: bodyLine + MAX_ADVISED_BODY_LINES, rule: "body-lines", message });
}

function reportUnknown(fields: Fields, report: Report): void {
  for (const [key, { line }] of fields) {
    if (FIELD_NAMES.includes(key)) continue;
    const meant = key.toLowerCase().replaceAll("_", "-");
    const hint = FIELD_NAMES.includes(meant) ? `did you mean ${shown(meant)}?` : "own data belongs below metadata";
    const message = `unknown field ${shown(key)}; ${hint}`;
    report({ grade: "rule", line, rule: "unknown-field", message });
  }
}

type TextContext = { readonly key: string; readonly grade: Grade; readonly report: Report };

/** The text of a field; undefined when it is absent, an alias (reported already) or, reported here, not text. */
function readText(field: FieldValue | undefined, { key, grade, report }: TextContext): string | undefined {
  if (field === undefined || field.kind === "alias") return undefined;
  if (field.kind === "text") return field.text;
  const message = `${key} must be text, found a ${field.kind}`;
  report({ grade, line: field.line, rule: `${key}-text`, message });
  return undefined;
}

/** The text of a field that must be there and be seen; without it a skill can be neither identified nor chosen. */
function readRequired(key: string, field: FieldValue | undefined, report: Report): string | undefined {
  const text = readText(field, { key, grade: "refused", report });
  if (field === undefined || (text !== undefined && isBlank(text))) {
    const message = `${key} is required and must not be ${field === undefined ? "left out" : "blank"}`;
    report({ grade: "refused", line: field?.line ?? 1, rule: `${key}-required`, message });
  }
  return text;
}

/** Other programs would take these names too, each in its own way; anything else could hide a path or a look-alike. */
const LENIENT_NAME = /^[A-Za-z0-9][A-Za-z0-9 ._:-]*$/;

function readName(field: FieldValue | undefined, { directoryName, report }: FieldContext): string | undefined {
  const name = readRequired("name", field, report);
  if (field === undefined || name === undefined || isBlank(name)) return undefined;
  const { line } = field;
  if (!/^[a-z0-9-]+$/.test(name)) {
    const grade = LENIENT_NAME.test(name) ? "rule" : "refused";
    const message = `name ${shown(name)} may hold only a-z, 0-9 and "-"`;
    report({ grade, line, rule: "name-characters", message });
  }
  const length = codePointCount(name);
  if (length > MAX_NAME_CODE_POINTS) {
    const message = `name has ${length} characters, at most ${MAX_NAME_CODE_POINTS} are allowed`;
    report({ grade: "rule", line, rule: "name-length", message });
  }
  if (/^-|-$|--/.test(name)) {
    const message = `name ${shown(name)} must not start or end with "-" nor hold "--"`;
    report({ grade: "rule", line, rule: "name-hyphens", message });
  }
  if (name !== directoryName) {
    const message = `name ${shown(name)} must equal the directory name ${shown(directoryName)}`;
    report({ grade: "rule", line, rule: "name-directory", message });
  }
  return name;
}

function readDescription(field: FieldValue | undefined, report: Report): string | undefined {
  const description = readRequired("description", field, report);
  const length = codePointCount(description ?? "");
  if (field !== undefined && length > MAX_DESCRIPTION_CODE_POINTS) {
    const message = `description has ${length} characters, at most ${MAX_DESCRIPTION_CODE_POINTS} are allowed`;
    report({ grade: "rule", line: field.line, rule: "description-length", message });
  }
  return description;
}

function readCompatibility(field: FieldValue | undefined, report: Report): string | undefined {
  const compatibility = readText(field, { key: "compatibility", grade: "rule", report });
  if (field === undefined || compatibility === undefined) return undefined;
  const length = isBlank(compatibility) ? 0 : codePointCount(compatibility);
  if (length > 0 && length <= MAX_COMPATIBILITY_CODE_POINTS) return compatibility;
  const message = `compatibility has ${length} characters, from 1 to ${MAX_COMPATIBILITY_CODE_POINTS} are allowed`;
  report({ grade: "rule", line: field.line, rule: "compatibility-length", message });
  return compatibility;
}

function readMetadata(field: FieldValue | undefined, report: Report): ReadonlyMap<string, string> {
  const metadata = new Map<string, string>();
  if (field === undefined || field.kind === "alias") return metadata;
  if (field.kind !== "mapping") {
    const message = `metadata must be a mapping of text to text, found ${field.kind === "text" ? "text" : "a list"}`;
    report({ grade: "rule", line: field.line, rule: "metadata-mapping", message });
    return metadata;
  }
  for (const [key, value] of field.fields) {
    if (value.kind === "text") metadata.set(key, value.text);
    if (value.kind === "text" || value.kind === "alias") continue;
    const message = `metadata key ${shown(key)} must be text, found a ${value.kind}`;
    report({ grade: "rule", line: value.line, rule: "metadata-text", message });
  }
  return metadata;
}

function readAllowedTools(field: FieldValue | undefined, report: Report): readonly string[] {
  if (field === undefined) return [];
  if (field.kind === "text") return readTools(field.text, field.line, report);
  // Losing a restriction must not pass as a warning: only a plain list has one meaning.
  const plainList = field.kind === "list" && field.items.every(({ kind }) => kind === "text");
  readText(field, { key: "allowed-tools", grade: plainList ? "rule" : "refused", report });
  if (field.kind !== "list") return [];
  return field.items.flatMap((item) => (item.kind === "text" ? readTools(item.text, item.line, report) : []));
}

function readTools(text: string, line: number, report: Report): readonly string[] {
  const { tools, commas, balanced } = splitTools(text);
  if (commas) {
    const message = "allowed-tools are separated by spaces, without commas: Read Write Bash(git:*)";
    report({ grade: "rule", line, rule: "allowed-tools-comma", message });
  }
  if (!balanced) {
    const message = "a parenthesis in allowed-tools is not closed or not opened";
    report({ grade: "refused", line, rule: "allowed-tools-parenthesis", message });
  }
  return tools;
}

type ToolList = { readonly tools: readonly string[]; readonly commas: boolean; readonly balanced: boolean };

/**
 * Splits at white space, and at the commas others write, but not inside parentheses: in `Bash(git add:*, x) Read` they
 * belong to a command pattern, and splitting there would allow a tool named `x)`.
 */
function splitTools(text: string): ToolList {
  const tools: string[] = [];
  let tool = "";
  let depth = 0;
  let commas = false;
  let balanced = true;
  for (const character of `${text} `) {
    if (character === "(") depth += 1;
    if (character === ")") depth -= 1;
    if (depth < 0) balanced = false;
    const separates = depth === 0 && /[\s,]/.test(character);
    commas ||= depth === 0 && character === ",";
    if (separates && tool !== "") tools.push(tool);
    tool = separates ? "" : tool + character;
  }
  return { tools, commas, balanced: balanced && depth === 0 };
}

function words(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
