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
 * Undefined when it would have more than about `maxCharacters`. Values are counted while they are written and sections
 * while they are repeated, because a template may repeat one large value, or a list a large section, so often that no
 * machine would get to the end.
 */
export function renderTemplate(
  template: string,
  values: JsonObject,
  { maxCharacters }: { readonly maxCharacters: number },
): FilledTemplate | undefined {
  // A character has up to two UTF-16 units, and a value's line of one character bears two marks.
  const most = 4 * maxCharacters;
  const written = new Budget(most);
  const repeated = new Budget(MAX_REPEATED);
  const filled = fill(
    template.replace(/\r\n?/g, "\n").replace(CONTROLS, ""),
    new FieldsContext(toView(values, written), undefined, () => repeated.spend(template.length)),
  );
  if (filled === undefined || filled.length > most) return undefined;
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
/** Of a template: the marks are ours, and the rest has no place in a document. */
const CONTROLS = /[\0-\x08\v-\x1f\x7f]/g;

export function toMarkdown(filled: FilledTemplate): string {
  return filled.replaceAll(ESCAPE, "\\");
}

export function toPlainText(filled: FilledTemplate): string {
  return filled.replaceAll(ESCAPE, "");
}

/** Characters of sections that are repeated; the most that a document of our own needs is a few thousand. */
export const MAX_REPEATED = 8_000_000;

class OverBudget extends Error {
  override readonly name = "OverBudget";
}

class Budget {
  #left: number;

  constructor(units: number) {
    this.#left = units;
  }

  /** Throws `OverBudget`: Mustache offers no other way out of a rendering. */
  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new OverBudget();
  }
}

/** Undefined when a budget was spent. */
function fill(template: string, context: FieldsContext): string | undefined {
  try {
    Mustache.parse(template);
  } catch (error) {
    throw new Fault("TOOL_UNAVAILABLE", "the skill's template is not valid Mustache", { cause: error });
  }
  try {
    return Mustache.render(template, context, undefined, { escape: toInline });
  } catch (error) {
    if (error instanceof OverBudget) return undefined;
    if (!(error instanceof RangeError)) throw error;
    throw new Fault("TOOL_UNAVAILABLE", "the skill's template nests sections deeper than can be rendered", {
      cause: error,
    });
  }
}

/** What would keep a template from being filled, one line each; for whoever approves it. */
export function findTemplateProblems(template: string): readonly string[] {
  try {
    const tokens = Mustache.parse(template);
    return hasPartial(tokens) ? ["has a partial ({{> …}}), and there are none"] : [];
  } catch (error) {
    return [`is not valid Mustache: ${error instanceof Error ? error.message : "unknown reason"}`];
  }
}

function hasPartial(tokens: readonly unknown[]): boolean {
  return tokens.some(
    (token) => Array.isArray(token) && (token[0] === ">" || (Array.isArray(token[4]) && hasPartial(token[4]))),
  );
}

/** A caller's text inside a view; Mustache turns it into a string through `escape` or through `toString`. */
class TextValue {
  readonly #raw: string;
  readonly #budget: Budget;
  #inline: string | undefined;
  #lines: string | undefined;

  constructor(raw: string, budget: Budget) {
    this.#raw = raw;
    this.#budget = budget;
  }

  toInline(): string {
    this.#inline ??= marked(toSingleLine(this.#raw));
    this.#budget.spend(this.#inline.length);
    return this.#inline;
  }

  toString(): string {
    this.#lines ??= toMultiLine(this.#raw).split("\n").map(marked).join("\n");
    this.#budget.spend(this.#lines.length);
    return this.#lines;
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
  readonly #onRepeat: () => void;

  constructor(view: unknown, parent: FieldsContext | undefined, onRepeat: () => void) {
    super(view, parent);
    this.#onRepeat = onRepeat;
  }

  override push(view: unknown): FieldsContext {
    this.#onRepeat();
    return new FieldsContext(view, this, this.#onRepeat);
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

function toView(value: unknown, budget: Budget): unknown {
  if (typeof value === "string") return isBlank(value) ? "" : new TextValue(value, budget);
  if (typeof value === "number") return new TextValue(String(value), budget);
  if (Array.isArray(value))
    return value.map((item) => toView(item, budget)).filter((item) => item !== "" && item !== null);
  if (typeof value !== "object" || value === null) return value;
  const members = new Map(Object.entries(value).map(([key, member]) => [key, toView(member, budget)]));
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
