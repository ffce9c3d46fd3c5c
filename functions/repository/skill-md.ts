/**
 * SKILL.md as the Agent Skills specification has it (agentskills/agentskills at 69ef37e), in two readings.
 * Strict, for a pinned repository: every rule, every violation, reported together. Lenient, for skills of others: what
 * breaks a rule but has one meaning is accepted with a warning; what two programs could read differently is refused.
 */

import { isBlank } from "../contract/text.ts";
import { decodeText } from "./decode-text.ts";
import type { Finding, Report } from "./finding.ts";
import { reportInvisibles, splitFrontmatter } from "./frontmatter.ts";
import { type SkillManifest, toManifest } from "./skill-manifest.ts";
import { readFields } from "./yaml-fields.ts";

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

const MAX_ADVISED_BODY_LINES = 500;

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
