import Mustache from "mustache";
import { isBlank, toMultiLine, toSingleLine } from "../contract/text.ts";
import type { JsonObject } from "../contract/tool.ts";

/**
 * Fills a Markdown template with a caller's values, so that a value stays a value. `{{x}}` writes it on one line,
 * `{{{x}}}` keeps its lines; in both, whatever would begin a heading, a list or a fence at the start of a line is
 * escaped, because a value that can open a section can forge one. HTML is not escaped: the output is Markdown, and
 * `Tom & Jerry` must not become `Tom &amp; Jerry`.
 */
export function renderTemplate(template: string, values: JsonObject): string {
  const rendered = Mustache.render(template, toView(values), undefined, { escape: toInline });
  return `${rendered.replace(/\n{3,}/g, "\n\n").trim()}\n`;
}

/** A caller's text inside a view; Mustache turns it into a string through `escape` or through `toString`. */
class TextValue {
  readonly #raw: string;

  constructor(raw: string) {
    this.#raw = raw;
  }

  toInline(): string {
    return escapeBlockStart(toSingleLine(this.#raw));
  }

  toString(): string {
    return toMultiLine(this.#raw).split("\n").map(escapeBlockStart).join("\n");
  }
}

function toInline(value: unknown): string {
  return value instanceof TextValue ? value.toInline() : String(value);
}

/** Null-prototype objects: Mustache looks names up with `in`, and would find `constructor` on a plain one. */
function toView(value: unknown): unknown {
  if (typeof value === "string") return isBlank(value) ? "" : new TextValue(value);
  if (Array.isArray(value)) return value.map(toView).filter((item) => item !== "" && item !== null);
  if (typeof value !== "object" || value === null) return value;
  const view = Object.create(null);
  for (const [key, member] of Object.entries(value)) {
    view[key] = toView(member);
    if (Array.isArray(member)) view[`has_${key}`] = view[key].length > 0;
  }
  return view;
}

/** What CommonMark reads as structure at the start of a line; a backslash before it, or before a list's dot, undoes it. */
const BLOCK_START =
  /^(\s*)(?:(#{1,6}(?=\s|$)|[-+*](?=\s|$)|>|```|~~~|(?:[-_*=]\s*){3,}$|\||=+\s*$)|(\d{1,9})([.)])(?=\s|$))/;

function escapeBlockStart(line: string): string {
  return line.replace(BLOCK_START, (_, space: string, mark?: string, number?: string, dot?: string) =>
    number === undefined ? `${space}\\${mark}` : `${space}${number}\\${dot}`,
  );
}

/** Undoes {@link escapeBlockStart} on one line. */
export function unescapeBlockStart(line: string): string {
  return line.replace(/^(\s*)\\(?=[#\-+*>`~_=|])/, "$1").replace(/^(\s*\d{1,9})\\(?=[.)])/, "$1");
}
