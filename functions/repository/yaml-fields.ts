import { Composer, isAlias, isMap, isScalar, isSeq, LineCounter, type YAMLMap } from "yaml";
import { hasInvisibles, quoted } from "../contract/printable.ts";
import { CONTROL, controlFinding } from "./decode-text.ts";
import type { Finding, Report } from "./finding.ts";
import { type Reader, reportSyntax, scanTokens } from "./yaml-tokens.ts";

/**
 * The fields of a frontmatter, every value as text. Any text gives an answer in bounded time: nesting is capped before
 * the YAML library recurses. Matching `key: value` by line, the obvious alternative, reads a block scalar as ">-"; a
 * YAML 1.2 core schema would turn the name 1e3 into a number.
 */

/** `line` is where the key of the value stands, or the value itself inside a list. An alias was reported already. */
export type FieldValue =
  | { readonly kind: "text"; readonly line: number; readonly text: string }
  | { readonly kind: "list"; readonly line: number; readonly items: readonly FieldValue[] }
  | { readonly kind: "mapping"; readonly line: number; readonly fields: Fields }
  | { readonly kind: "alias"; readonly line: number };

/** Keys come from outside, so never a plain object: `__proto__` and `constructor` are keys like any other. */
export type Fields = ReadonlyMap<string, FieldValue>;

/** The header begins below the opening fence. */
const HEADER_FIRST_LINE = 2;

const BYTE_ORDER_MARK = "\uFEFF";

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
  const message = `duplicate key ${quoted(name)}, first in line ${earlierLine}`;
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
