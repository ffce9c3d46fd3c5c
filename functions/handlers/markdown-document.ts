import * as z from "zod";
import { Fault } from "../contract/fault.ts";
import type { Handler } from "../contract/ports.ts";
import { codePointCount } from "../contract/text.ts";
import { readArguments, refuseArgument } from "./arguments.ts";
import { toEnvelope } from "./envelope.ts";
import type { PdfBlock } from "./pdf/page-layout.ts";
import { renderPdf } from "./pdf/pdf-document.ts";
import { renderTemplate, unescapeBlockStart } from "./template.ts";

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
  const markdown = renderTemplate(template, values);
  if (codePointCount(markdown) > MAX_DOCUMENT) {
    refuseArgument("", `make a document of more than ${MAX_DOCUMENT} characters; shorten them`);
  }
  const [firstLine = "", ...lines] = markdown.split("\n");
  const title = unescapeBlockStart(firstLine.replace(/^#\s*/, ""));
  const named = { wanted: filename ?? title, fallback: skill.id.replaceAll("_", "-") };
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

/** The Markdown that templates are written in: headings, list items and text. Values cannot add to it. */
function toBlocks(lines: readonly string[]): PdfBlock[] {
  const blocks: PdfBlock[] = [];
  for (const line of trimBlankEnds(lines)) {
    const heading = /^#{1,6}\s+(.*)$/.exec(line);
    const item = /^(\s*)([-*]|\d{1,9}[.)])\s+(.*)$/.exec(line);
    if (heading?.[1] !== undefined) blocks.push({ kind: "heading", text: unescapeBlockStart(heading[1]) });
    else if (item) blocks.push(toItem(item));
    else blocks.push({ kind: "text", text: unescapeBlockStart(line) });
  }
  return blocks;
}

function toItem([, indent = "", marker = "", text = ""]: RegExpExecArray): PdfBlock {
  const drawn = /^[-*]$/.test(marker) ? "\u2022" : marker;
  return { kind: "item", text: unescapeBlockStart(text), marker: drawn, depth: Math.floor(indent.length / 2) };
}

function trimBlankEnds(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => line.trim() !== "");
  const last = lines.findLastIndex((line) => line.trim() !== "");
  return first === -1 ? [] : lines.slice(first, last + 1);
}
