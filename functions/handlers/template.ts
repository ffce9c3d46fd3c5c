import Mustache from "mustache";
import { Fault } from "../contract/fault.ts";
import { isBlank, toMultiLine, toSingleLine } from "../contract/text.ts";
import type { JsonObject } from "../contract/tool.ts";

/**
 * Fills a Markdown template with a caller's values, so that a value stays a value: one that can begin a heading, a
 * list, a fence or a table can forge a section. Escaping each value by itself is not enough ("1" beside ". x" makes a
 * list) and too much ("at: 1. x" makes none), so whole lines are judged, by who wrote the characters that begin them.
 *
 * `{{x}}` writes a value on one line, `{{{x}}}` keeps its lines. HTML is not escaped: the output is Markdown, and
 * `Tom & Jerry` must not become `Tom &amp; Jerry`. A section `{{#x}}` is left out for what is missing, blank, empty or
 * false; 0 is a value. `has_x` says whether the list `x` has items. A name is looked up in the nearest object and
 * nowhere above it, unlike elsewhere in Mustache: an action without an owner must not borrow the document's. There are
 * no partials.
 *
 * Undefined when it would have more than about `maxCharacters`: a template may repeat one large value many times.
 */
export function renderTemplate(
  template: string,
  values: JsonObject,
  { maxCharacters }: { readonly maxCharacters: number },
): FilledTemplate | undefined {
  const filled = fill(template.replace(MARKS, ""), new FieldsContext(toView(values)));
  // A character has up to two UTF-16 units, and a value's line of one character bears two marks.
  if (filled.length > 4 * maxCharacters) return undefined;
  const lines = filled.split("\n").map(guardLine).join("\n");
  return `${lines.replace(/\n{3,}/g, "\n\n").trim()}\n`;
}

/** Text in which a NUL stands where Markdown needs a backslash and any other output needs nothing. */
export type FilledTemplate = string;

const ESCAPE = "\0";
/** Stand around what a value wrote. Values cannot hold them: control characters are taken out of every value. */
const VALUE_START = "\u0001";
const VALUE_END = "\u0002";
const MARKS = /[\0\u0001\u0002]/g;

export function toMarkdown(filled: FilledTemplate): string {
  return filled.replaceAll(ESCAPE, "\\");
}

export function toPlainText(filled: FilledTemplate): string {
  return filled.replaceAll(ESCAPE, "");
}

function fill(template: string, context: FieldsContext): string {
  try {
    Mustache.parse(template);
  } catch (error) {
    throw new Fault("TOOL_UNAVAILABLE", "the skill's template is not valid Mustache", { cause: error });
  }
  return Mustache.render(template, context, undefined, { escape: toInline });
}

/** A caller's text inside a view; Mustache turns it into a string through `escape` or through `toString`. */
class TextValue {
  readonly #raw: string;

  constructor(raw: string) {
    this.#raw = raw;
  }

  toInline(): string {
    return marked(toSingleLine(this.#raw));
  }

  toString(): string {
    return toMultiLine(this.#raw).split("\n").map(marked).join("\n");
  }
}

/** A caller's object inside a view. A map, because a plain object would be found to have a `constructor`. */
class FieldsValue {
  readonly members: ReadonlyMap<string, unknown>;

  constructor(members: ReadonlyMap<string, unknown>) {
    this.members = members;
  }

  toString(): string {
    return "";
  }
}

class FieldsContext extends Mustache.Context {
  override push(view: unknown): FieldsContext {
    return new FieldsContext(view, this);
  }

  override lookup(name: string): unknown {
    if (name === ".") return this.view;
    return name.split(".").reduce<unknown>(memberOf, this.#nearestFields());
  }

  #nearestFields(): unknown {
    const view: unknown = this.view;
    if (view instanceof FieldsValue || !(this.parent instanceof FieldsContext)) return view;
    return this.parent.#nearestFields();
  }
}

function memberOf(value: unknown, name: string): unknown {
  return value instanceof FieldsValue ? value.members.get(name) : undefined;
}

function marked(text: string): string {
  return text === "" ? "" : VALUE_START + text + VALUE_END;
}

function toInline(value: unknown): string {
  if (Array.isArray(value)) return value.map(toInline).join(", ");
  return value instanceof TextValue ? value.toInline() : String(value);
}

function toView(value: unknown): unknown {
  if (typeof value === "string") return isBlank(value) ? "" : new TextValue(value);
  if (typeof value === "number") return new TextValue(String(value));
  if (Array.isArray(value)) return value.map(toView).filter((item) => item !== "" && item !== null);
  if (typeof value !== "object" || value === null) return value;
  const members = new Map(Object.entries(value).map(([key, member]) => [key, toView(member)]));
  for (const [key, member] of [...members]) {
    if (Array.isArray(member)) members.set(`has_${key}`, member.length > 0);
  }
  return new FieldsValue(members);
}

/**
 * What CommonMark and GFM read as structure at the start of a line: quotes and lists, which hold more structure; then
 * headings, fences, rules and underlines, rows of a table, HTML that swallows what follows, definitions of links.
 */
const CONTAINER = /^(\s*)(?:(>|[-+*](?=\s|$))|(\d{1,9})[.)](?=\s|$))/;
const LEAF = new RegExp(
  [
    String.raw`^(\s*)(#{1,6}(?=\s|$)|\x60{3}|~{3}`,
    String.raw`(?:[-_*]\s*){3,}$|=+\s*$|\+{3,}\s*$`,
    String.raw`\||[-:][-:|\s]*$`,
    String.raw`<(?=[!?]|/?(?:script|pre|style|textarea)\b)|\[(?=[^\]]*\]:|[ xX]\]\s))`,
  ].join("|"),
  "i",
);

/** The line without marks, escaped where a value takes part in beginning a block. */
function guardLine(line: string): string {
  if (!line.includes(VALUE_START)) return line;
  const { text, byValue } = readMarks(line);
  const forged = findForged(text, byValue);
  return forged === undefined ? text : text.slice(0, forged) + ESCAPE + text.slice(forged);
}

type OwnedLine = { readonly text: string; readonly byValue: readonly boolean[] };

function readMarks(line: string): OwnedLine {
  const byValue: boolean[] = [];
  let text = "";
  for (const part of line.split(/(\u0001[^\u0002]*\u0002)/)) {
    const plain = part.replace(MARKS, "");
    for (let index = 0; index < plain.length; index += 1) byValue.push(plain !== part);
    text += plain;
  }
  return { text, byValue };
}

/** Index at which a backslash undoes the first block that a value has a part in. */
function findForged(text: string, byValue: readonly boolean[]): number | undefined {
  for (let start = 0; start < text.length; ) {
    const rest = text.slice(start);
    const leaf = LEAF.exec(rest);
    const container = leaf ? null : CONTAINER.exec(rest);
    const [whole, space = "", mark = "", number = ""] = leaf ?? container ?? [];
    if (whole === undefined) return undefined;
    // Of "12." the dot decides: a number that a template makes into a list is meant to be one.
    const from = start + space.length + number.length;
    const to = from + (number === "" ? mark.length : 1);
    const forged = byValue.indexOf(true, from);
    if (forged !== -1 && forged < to) return forged;
    if (leaf) return undefined;
    start += whole.length;
  }
  return undefined;
}
