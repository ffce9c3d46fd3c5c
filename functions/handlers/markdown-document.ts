import * as z from "zod";
import { Fault } from "../contract/fault.ts";
import type { Handler } from "../contract/ports.ts";
import type { CallableSkill } from "../contract/skill.ts";
import { codePointCount, isBlank } from "../contract/text.ts";
import type { JsonObject } from "../contract/tool.ts";
import { readArguments, refuseArgument } from "./arguments.ts";
import { toEnvelope } from "./envelope.ts";
import type { PdfBlock } from "./pdf/page-layout.ts";
import { renderPdf } from "./pdf/pdf-document.ts";
import { type FilledTemplate, findTemplateProblems, renderTemplate, toMarkdown, toPlainText } from "./template.ts";

/**
 * Any document that is a template filled with arguments. A skill gives the template `document`; its first heading is
 * the title. `format: "pdf"` draws the same text.
 */

/** Longest document in code points; the PDF writer is measured up to here. */
export const MAX_DOCUMENT = 40_000;

const Format = z.looseObject({
  format: z.enum(["markdown", "pdf"]).default("markdown"),
  filename: z.string().optional(),
});

/** Answers `{created, format, title, pages?, replaced_characters?, artifact}`. */
export const markdownDocument: Handler = ({ arguments: given, skill }) => {
  const { format, filename, ...values } = readArguments(Format, given);
  const template = skill?.templates.get("document");
  if (skill === undefined || template === undefined) {
    throw new Fault("TOOL_UNAVAILABLE", 'the skill has no template "document", which its handler needs');
  }
  const filled = fillWithinLimit(template, values);
  const markdown = toMarkdown(filled);
  const [firstLine = "", ...lines] = filled.split("\n");
  const title = toPlainText(firstLine.replace(/^#(?:\s+|$)/, ""));
  if (isBlank(title)) refuseArgument("", "leave the document without a visible title");
  const named = { filename, title, fallback: skill.id.replaceAll("_", "-") };
  if (format === "markdown") {
    const artifact = toEnvelope({ content: markdown, mediaType: "text/markdown", ...named });
    return { created: true, format, title, artifact };
  }
  const pdf = renderPdf({ title, blocks: toBlocks(lines) });
  return {
    created: true,
    format,
    title,
    pages: pdf.pages,
    ...(pdf.replacedCharacters > 0 ? { replaced_characters: pdf.replacedCharacters } : {}),
    artifact: toEnvelope({ content: pdf.bytes, mediaType: "application/pdf", ...named }),
  };
};

/** One line for everything that would keep the skill from making a document. */
export function findDocumentProblems({ templates }: CallableSkill): readonly string[] {
  const template = templates.get("document");
  if (template === undefined) return ['/templates: the handler needs the template "document"'];
  return findTemplateProblems(template).map((problem) => `/templates/document ${problem}`);
}

function fillWithinLimit(template: string, values: JsonObject): FilledTemplate {
  const filled = renderTemplate(template, values, { maxCharacters: MAX_DOCUMENT });
  if (filled !== undefined && codePointCount(filled) <= MAX_DOCUMENT) return filled;
  return refuseArgument("", `make a document of more than ${MAX_DOCUMENT} characters; shorten them`);
}

/** The Markdown that templates are written in: headings, list items and text. Values cannot add to it. */
function toBlocks(lines: readonly string[]): PdfBlock[] {
  return trimBlankEnds(lines).map((line) => {
    const [, heading] = /^#{1,6}\s+(.*)$/.exec(line) ?? [];
    if (heading !== undefined) return { kind: "heading", text: toPlainText(heading) };
    const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/.exec(line);
    return item ? toItem(item) : { kind: "text", text: toPlainText(line) };
  });
}

function toItem([, indent = "", marker = "", text = ""]: RegExpExecArray): PdfBlock {
  const drawn = /^[-*+]$/.test(marker) ? "\u2022" : marker;
  return { kind: "item", text: toPlainText(text), marker: drawn, depth: Math.floor(indent.length / 2) };
}

function trimBlankEnds(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => line.trim() !== "");
  const last = lines.findLastIndex((line) => line.trim() !== "");
  return first === -1 ? [] : lines.slice(first, last + 1);
}
