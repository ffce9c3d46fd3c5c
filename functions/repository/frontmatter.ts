/**
 * From the bytes of a SKILL.md to its body and the fields of its frontmatter, every value as text.
 * Any bytes give an answer in bounded time: size and nesting are capped before the YAML library recurses.
 * Splitting on "---" or matching `key: value` by line, the obvious alternatives, cut values that hold "---" and read
 * a block scalar as ">-"; a YAML 1.2 core schema would turn the name 1e3 into a number.
 */

import {
  Composer,
  CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  type YAMLError,
  type YAMLMap,
} from "yaml";
import { firstCodePoints, utf8ByteCount, withoutInvisibles } from "../contract/text.ts";

/** `refused` in every reading; `rule` breaks the specification but has one meaning; `advice` breaks nothing. */
export type Grade = "refused" | "rule" | "advice";

/** `line` counts from 1 in the file; `rule` is a stable kebab-case id. */
export type Finding = {
  readonly grade: Grade;
  readonly line: number;
  readonly rule: string;
  readonly message: string;
};

export type Report = (finding: Finding) => void;

/** `line` is where the key of the value stands, or the value itself inside a list. An alias was reported already. */
export type FieldValue =
  | { readonly kind: "text"; readonly line: number; readonly text: string }
  | { readonly kind: "list"; readonly line: number; readonly items: readonly FieldValue[] }
  | { readonly kind: "mapping"; readonly line: number; readonly fields: Fields }
  | { readonly kind: "alias"; readonly line: number };

/** Keys come from outside, so never a plain object: `__proto__` and `constructor` are keys like any other. */
export type Fields = ReadonlyMap<string, FieldValue>;

/** `bodyLine` is the file's line number of the body's first line. */
export type Sections = { readonly header: string; readonly body: string; readonly bodyLine: number };

/** Bytes of UTF-8. The longest frontmatter of 281 public skills has 1,054. */
export const MAX_FRONTMATTER_BYTES = 65_536;

/** Collections inside each other, the top mapping included; `metadata` needs two. */
export const MAX_NESTING = 16;

/** After a few, YAML errors only repeat the first. */
const MAX_SYNTAX_FINDINGS = 5;

const MAX_SHOWN_CODE_POINTS = 80;

/** The header begins below the opening fence. */
const HEADER_FIRST_LINE = 2;

const BYTE_ORDER_MARK = "\uFEFF";

/** What would act on a terminal, a log or a reader instead of being seen. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** A name or key for a message: quoted, cut, and with everything invisible written as an escape. */
export function shown(text: string): string {
  const head = firstCodePoints(text, MAX_SHOWN_CODE_POINTS);
  const escaped = JSON.stringify(head).replace(UNPRINTABLE, (character) => `\\u{${toHex(character)}}`);
  return head.length < text.length ? `${escaped}...` : escaped;
}

function toHex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).padStart(4, "0");
}

type Encoding = { readonly name: string; readonly start: readonly number[] };

/** Longest mark first, as that of UTF-32 begins like that of UTF-16; without a mark, "--" betrays the encoding. */
const FOREIGN_ENCODINGS: readonly Encoding[] = [
  { name: "UTF-32", start: [0xff, 0xfe, 0, 0] },
  { name: "UTF-32", start: [0, 0, 0xfe, 0xff] },
  { name: "UTF-16", start: [0xff, 0xfe] },
  { name: "UTF-16", start: [0xfe, 0xff] },
  { name: "UTF-16", start: [0x2d, 0, 0x2d, 0] },
  { name: "UTF-16", start: [0, 0x2d, 0, 0x2d] },
];

/**
 * The text of a file of at most `maxBytes` bytes: valid UTF-8, a leading byte-order mark dropped, `\n` as the only line
 * break, and free of control characters, which are reported. Undefined when there is no text to go on with.
 */
export function decodeText(bytes: Uint8Array, maxBytes: number, report: Report): string | undefined {
  if (bytes.length > maxBytes) {
    const message = `file has ${bytes.length} bytes, at most ${maxBytes} are allowed`;
    report({ grade: "refused", line: 1, rule: "file-size", message });
    return undefined;
  }
  const foreign = FOREIGN_ENCODINGS.find(({ start }) => start.every((byte, index) => bytes[index] === byte));
  if (foreign !== undefined) {
    const message = `file is encoded as ${foreign.name}; save it as UTF-8`;
    report({ grade: "refused", line: 1, rule: "encoding", message });
    return undefined;
  }
  const text = decodeUtf8(bytes);
  if (text !== undefined) return withoutControls(text.replace(/^\uFEFF+/, "").replace(/\r\n?/g, "\n"), report);
  const line = firstInvalidLine(bytes);
  report({ grade: "refused", line, rule: "encoding", message: "bytes in this line are not valid UTF-8" });
  return undefined;
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined; // the decoder says no more than that the bytes are invalid
  }
}

/** A line feed is never part of a longer UTF-8 sequence, so lines can be tried one by one. */
function firstInvalidLine(bytes: Uint8Array): number {
  let line = 1;
  let start = 0;
  while (start < bytes.length) {
    const feed = bytes.indexOf(0x0a, start);
    const end = feed === -1 ? bytes.length : feed;
    if (decodeUtf8(bytes.subarray(start, end)) === undefined) break;
    start = end + 1;
    line += 1;
  }
  return line;
}

/** Everything below the space but tab and line feed; C tools cut at NUL, XML and queues refuse the rest. */
const CONTROL = /[\0-\x08\v-\x1f]/g;

/** Each control character is reported once, where it comes first; they go, so that the fields can still be checked. */
function withoutControls(text: string, report: Report): string {
  const seen = new Set<string>();
  for (const [index, line] of text.split("\n").entries()) {
    for (const [character] of line.matchAll(CONTROL)) {
      if (!seen.has(character)) report(controlFinding(character, index + 1));
      seen.add(character);
    }
  }
  return text.replace(CONTROL, "");
}

function controlFinding(character: string, line: number): Finding {
  const name = character === "\0" ? "U+0000 (NUL)" : `U+${toHex(character)}`;
  return { grade: "refused", line, rule: "control-character", message: `control character ${name} is not allowed` };
}

/** Blanks after the dashes cannot be seen and are common; anything else makes it another line. */
const FENCE = /^---[ \t]*$/;

/** What people take for a fence: indented, too long, YAML's end mark, dashes set by a word processor. */
const NEAR_FENCE = /^\s*(?:-{2,}|[\u2010-\u2015\u2212]+|\.\.\.)\s*$/;

/** Header and body around the second fence; later fences are rules in the body. Undefined when a fence is missing. */
export function splitFrontmatter(text: string, report: Report): Sections | undefined {
  const lines = text.split("\n");
  if (!FENCE.test(lines[0] ?? "")) {
    const first = lines.findIndex((line) => FENCE.test(line) || NEAR_FENCE.test(line));
    const message = `the file must start with a first line "---"${hint(first, "the first one like it is line")}`;
    report({ grade: "refused", line: 1, rule: "frontmatter-start", message });
    return undefined;
  }
  const close = lines.findIndex((line, index) => index > 0 && FENCE.test(line));
  if (close === -1) {
    const near = lines.findIndex((line) => NEAR_FENCE.test(line) && !FENCE.test(line));
    const message = `the frontmatter has no closing line "---"${hint(near, "similar, but not the same, is line")}`;
    report({ grade: "refused", line: 1, rule: "frontmatter-end", message });
    return undefined;
  }
  const header = lines.slice(1, close).join("\n");
  if (utf8ByteCount(header) > MAX_FRONTMATTER_BYTES) {
    const message = `frontmatter has ${utf8ByteCount(header)} bytes, at most ${MAX_FRONTMATTER_BYTES} are allowed`;
    report({ grade: "refused", line: 1, rule: "frontmatter-size", message });
    return undefined;
  }
  return { header, body: lines.slice(close + 1).join("\n"), bodyLine: close + 2 };
}

function hint(index: number, words: string): string {
  return index === -1 ? "" : `; ${words} ${index + 1}`;
}

/** One finding for the whole body: what shows nothing to a reviewer can still instruct a model. */
export function reportInvisibles({ body, bodyLine }: Sections, report: Report): void {
  const lines = body.split("\n").flatMap((line, index) => (hasInvisibles(line) ? [bodyLine + index] : []));
  const [line] = lines;
  if (line === undefined) return;
  const message = `invisible characters in ${lines.length} line(s) of the body`;
  report({ grade: "advice", line, rule: "invisible-character", message });
}

function hasInvisibles(text: string): boolean {
  return withoutInvisibles(text) !== text;
}

type Scan = {
  readonly tokens: readonly CST.Token[];
  /** Where the last token begins, UTF-16 units from the start of the header. */
  readonly lastOffset: number;
  /** Lines with a forbidden indicator, reported once each; what else is wrong there follows from it. */
  readonly indicatedLines: ReadonlySet<number>;
};

type Reader = {
  readonly report: Report;
  /** Line in the file for an offset in the header. */
  readonly lineAt: (offset: number) => number;
};

/**
 * The fields of a header. Undefined when it is no single YAML mapping; what is reported as `refused` beside a result
 * (a tag, a duplicate) leaves the other fields readable, so that all violations come together.
 */
export function readFields(header: string, report: Report): Fields | undefined {
  if (header.includes(BYTE_ORDER_MARK)) {
    const index = header.split("\n").findIndex((line) => line.includes(BYTE_ORDER_MARK));
    report(byteOrderMarkFinding(index + HEADER_FIRST_LINE));
  }
  const source = header.replaceAll(BYTE_ORDER_MARK, "");
  const reader = { report, lineAt: lineFinder(source) };
  try {
    return readYaml(source, reader);
  } catch {
    // No input is known to get here; a defect of the YAML library must cost one file, not the whole load.
    report({ grade: "refused", line: 1, rule: "yaml-syntax", message: "the YAML of the frontmatter cannot be read" });
    return undefined;
  }
}

function byteOrderMarkFinding(line: number): Finding {
  const message = "a byte-order mark (U+FEFF) may stand only at the start of the file";
  return { grade: "rule", line, rule: "byte-order-mark", message };
}

function lineFinder(source: string): (offset: number) => number {
  const counter = new LineCounter();
  counter.addNewLine(0);
  for (const { index } of source.matchAll(/\n/g)) counter.addNewLine(index + 1);
  return (offset) => counter.linePos(offset).line + HEADER_FIRST_LINE - 1;
}

function readYaml(source: string, reader: Reader): Fields | undefined {
  const scan = scanTokens(source, reader);
  if (scan === undefined) return undefined;
  // Duplicates are found by us: the library compares every pair of keys and does not say which key it was.
  const composer = new Composer({ schema: "failsafe", resolveKnownTags: false, uniqueKeys: false });
  const documents = [...composer.compose(scan.tokens)];
  const errors = documents.flatMap((document) => document.errors);
  if (errors.length > 0) {
    reportSyntax(errors, scan, reader);
    return undefined;
  }
  if (documents.length > 1) return undefined; // reported by its marker
  const contents = documents[0]?.contents;
  if (isMap(contents)) return toFields(contents, reader);
  const message = "the frontmatter must be a YAML mapping with one field per line, such as name: my-skill";
  reader.report({ grade: "refused", line: 1, rule: "frontmatter-mapping", message });
  return undefined;
}

/**
 * Runs the lexer and the parser step by step, so that nesting is known while it grows: composing 60,000 brackets
 * would exhaust the stack. Undefined when it is too deep.
 */
function scanTokens(source: string, reader: Reader): Scan | undefined {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const indicatedLines = new Set<number>();
  let lastOffset = 0;
  let scalarFollows = false;
  for (const lexeme of new Lexer().lex(source)) {
    lastOffset = parser.offset;
    const line = reader.lineAt(lastOffset);
    const reportable = !scalarFollows && !indicatedLines.has(line);
    if (reportable && reportIndicator(lexeme, line, reader.report)) indicatedLines.add(line);
    scalarFollows = !scalarFollows && lexeme === CST.SCALAR;
    tokens.push(...parser.next(lexeme));
    if (parser.stack.filter(CST.isCollection).length > MAX_NESTING) {
      const message = `lists and mappings are nested deeper than ${MAX_NESTING}`;
      reader.report({ grade: "refused", line, rule: "yaml-nesting", message });
      return undefined;
    }
  }
  tokens.push(...parser.end());
  return { tokens, lastOffset, indicatedLines };
}

type Indicator = { readonly rule: string; readonly what: string };

/** YAML that changes a value's type, shares it or ends the document; each is also what an unquoted `**Note**` does. */
const INDICATORS: ReadonlyMap<CST.TokenType | null, Indicator> = new Map([
  ["anchor", { rule: "yaml-anchor", what: "a YAML anchor" }],
  ["alias", { rule: "yaml-anchor", what: "an alias of a YAML anchor" }],
  ["tag", { rule: "yaml-tag", what: "a YAML tag" }],
  ["directive-line", { rule: "yaml-document", what: "a YAML directive" }],
  ["doc-start", { rule: "yaml-document", what: "the start of another YAML document" }],
  ["doc-end", { rule: "yaml-document", what: "the end of the YAML document" }],
]);

function reportIndicator(lexeme: string, line: number, report: Report): boolean {
  const indicator = INDICATORS.get(CST.tokenType(lexeme));
  if (indicator === undefined) return false;
  const message = `${shown(lexeme)} is ${indicator.what}, which is not allowed; if it is text, quote the whole value`;
  report({ grade: "refused", line, rule: indicator.rule, message });
  return true;
}

const QUOTE_ADVICE = "put the whole value in quotes, or in a block below description: >-";

/** By the library's error code; its own words name the rule of YAML that was broken, not what to do. */
const SYNTAX_MESSAGES: ReadonlyMap<string, string> = new Map([
  ["BLOCK_AS_IMPLICIT_KEY", `": " inside an unquoted value starts another key; ${QUOTE_ADVICE}`],
  ["MULTILINE_IMPLICIT_KEY", `": " inside an unquoted value starts another key; ${QUOTE_ADVICE}`],
  ["BAD_SCALAR_START", `an unquoted value cannot start with this character; ${QUOTE_ADVICE}`],
  ["UNEXPECTED_TOKEN", `text that YAML does not expect here; ${QUOTE_ADVICE}`],
  ["BLOCK_IN_FLOW", `": " inside brackets starts another key; ${QUOTE_ADVICE}`],
  ["TAB_AS_INDENT", "a tab is used as indentation; use spaces"],
  ["BAD_INDENT", "the indentation fits no line above, or a bracket is not closed"],
  ["BAD_DQ_ESCAPE", "an unknown escape after a backslash in double quotes; use single quotes or double the backslash"],
]);

function reportSyntax(errors: readonly YAMLError[], scan: Scan, { report, lineAt }: Reader): void {
  const lines = new Set<number>();
  for (const error of errors) {
    // A quote that is never closed is an error at the end of the header; a person looks for where it was opened.
    const line = lineAt(Math.min(error.pos[0], scan.lastOffset));
    if (scan.indicatedLines.has(line) || lines.has(line) || lines.size === MAX_SYNTAX_FINDINGS) continue;
    lines.add(line);
    const reason = SYNTAX_MESSAGES.get(error.code) ?? firstCodePoints(error.message, MAX_SHOWN_CODE_POINTS);
    report({ grade: "refused", line, rule: "yaml-syntax", message: `not valid YAML in this line: ${reason}` });
  }
}

function toFields(mapping: YAMLMap<unknown, unknown>, reader: Reader): Fields {
  const fields = new Map<string, FieldValue>();
  let line = HEADER_FIRST_LINE;
  for (const { key, value } of mapping.items) {
    line = lineOf(key, line, reader);
    const name = isScalar(key) ? toText(key.value, line, reader) : undefined;
    if (name === undefined) {
      reader.report({ grade: "refused", line, rule: "yaml-key", message: "a key must be text" });
      continue;
    }
    const earlier = fields.get(name);
    if (earlier !== undefined) reader.report(duplicateFinding(name, line, earlier.line));
    if (name === "<<") reader.report(mergeKeyFinding(line));
    if (earlier === undefined) fields.set(name, toValue(value, line, reader));
  }
  return fields;
}

/** Parsers differ in keeping the first or the last: a reviewer and a client would see different skills. */
function duplicateFinding(name: string, line: number, earlierLine: number): Finding {
  const message = `duplicate key ${shown(name)}, first in line ${earlierLine}`;
  return { grade: "refused", line, rule: "duplicate-key", message };
}

function mergeKeyFinding(line: number): Finding {
  return { grade: "refused", line, rule: "yaml-merge-key", message: 'the YAML merge key "<<" is not allowed' };
}

function toValue(node: unknown, line: number, reader: Reader): FieldValue {
  if (isScalar(node)) {
    if (node.type === "PLAIN" && node.comment) reader.report(commentFinding(line));
    return { kind: "text", line, text: toText(node.value, line, reader).trim() };
  }
  if (isMap(node)) return { kind: "mapping", line, fields: toFields(node, reader) };
  if (isSeq(node)) {
    return { kind: "list", line, items: node.items.map((item) => toValue(item, lineOf(item, line, reader), reader)) };
  }
  return isAlias(node) ? { kind: "alias", line } : { kind: "text", line, text: "" };
}

/** `Fixes issue #12 and others` is the text "Fixes issue": valid, and cut short without a word. */
function commentFinding(line: number): Finding {
  const message = 'the value ends before " #", where a comment begins; if that is text, put the whole value in quotes';
  return { grade: "advice", line, rule: "yaml-comment", message };
}

function lineOf(node: unknown, fallback: number, { lineAt }: Reader): number {
  const offset = isScalar(node) || isMap(node) || isSeq(node) ? node.range?.[0] : undefined;
  return offset === undefined ? fallback : lineAt(offset);
}

/** Untrimmed: the key "name " is not the key "name". */
function toText(value: unknown, line: number, { report }: Reader): string {
  const text = typeof value === "string" ? value.replace(/\r\n?/g, "\n") : "";
  reportCharacters(text, line, report);
  return text.replaceAll(BYTE_ORDER_MARK, "");
}

/** Escapes in double quotes bring back what the file itself may not hold, so every value is checked again. */
function reportCharacters(text: string, line: number, report: Report): void {
  for (const character of new Set(text.match(CONTROL))) report(controlFinding(character, line));
  if (!text.isWellFormed()) {
    const message = "an escape stands for half a character (a lone surrogate)";
    report({ grade: "refused", line, rule: "lone-surrogate", message });
  }
  if (text.includes(BYTE_ORDER_MARK)) report(byteOrderMarkFinding(line));
  if (hasInvisibles(text.replace(CONTROL, "").replaceAll(BYTE_ORDER_MARK, "").toWellFormed())) {
    report({ grade: "advice", line, rule: "invisible-character", message: "invisible characters in a key or value" });
  }
}
