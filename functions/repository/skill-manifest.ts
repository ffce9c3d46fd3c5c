import { quoted } from "../contract/printable.ts";
import { codePointCount, isBlank } from "../contract/text.ts";
import { splitTools } from "./allowed-tools.ts";
import type { Grade, Report } from "./finding.ts";
import type { Fields, FieldValue } from "./yaml-fields.ts";

/**
 * The fields of a SKILL.md against the specification. A field that the specification does not know is never
 * interpreted, or a skill could grant itself something.
 */

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

const MAX_NAME_CODE_POINTS = 64;
const MAX_DESCRIPTION_CODE_POINTS = 1_024;
const MAX_COMPATIBILITY_CODE_POINTS = 500;

const FIELD_NAMES: readonly string[] = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

export type FieldContext = { readonly directoryName: string; readonly report: Report };

/** Undefined when there is no name or no description; every violation is reported. */
export function toManifest(fields: Fields, instructions: string, context: FieldContext): SkillManifest | undefined {
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

function reportUnknown(fields: Fields, report: Report): void {
  for (const [key, { line }] of fields) {
    if (FIELD_NAMES.includes(key)) continue;
    const meant = key.toLowerCase().replaceAll("_", "-");
    const hint = FIELD_NAMES.includes(meant) ? `did you mean ${quoted(meant)}?` : "own data belongs below metadata";
    const message = `unknown field ${quoted(key)}; ${hint}`;
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
    const message = `name ${quoted(name)} may hold only a-z, 0-9 and "-"`;
    report({ grade, line, rule: "name-characters", message });
  }
  const length = codePointCount(name);
  if (length > MAX_NAME_CODE_POINTS) {
    const message = `name has ${length} characters, at most ${MAX_NAME_CODE_POINTS} are allowed`;
    report({ grade: "rule", line, rule: "name-length", message });
  }
  if (/^-|-$|--/.test(name)) {
    const message = `name ${quoted(name)} must not start or end with "-" nor hold "--"`;
    report({ grade: "rule", line, rule: "name-hyphens", message });
  }
  if (name !== directoryName) {
    const message = `name ${quoted(name)} must equal the directory name ${quoted(directoryName)}`;
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
    const message = `metadata key ${quoted(key)} must be text, found a ${value.kind}`;
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

function words(text: string): readonly string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
