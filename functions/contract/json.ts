import { createHash } from "node:crypto";
import { type Outcome, refuse, succeed } from "./fault.ts";

/**
 * JSON from outside, read so that what was reviewed is what is used: `JSON.parse` keeps the last of two equal keys
 * without a word and lets `__proto__` through as an own key, and nothing bounds its depth.
 */

export type JsonOptions = { readonly maxDepth: number };

const FORBIDDEN_KEY = "__proto__";
const BYTE_ORDER_MARK = "\ufeff";

/**
 * The parsed value, or `REQUEST_INVALID` that says what and where. Refused: syntax errors, a key that stands twice in
 * one object, the key `__proto__`, nesting beyond `maxDepth`, text with a lone surrogate, numbers that overflow or that
 * a double cannot hold exactly.
 */
export function parseStrictJson(text: string, { maxDepth }: JsonOptions): Outcome<unknown> {
  const source = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  if (source.trim() === "") return refuse("REQUEST_INVALID", "JSON expected, got nothing");
  // Before parsing: JSON.parse takes seconds and gigabytes for a few megabytes of "[".
  const problem = findProblem(source, maxDepth);
  return problem === undefined ? parseSyntax(source) : refuse("REQUEST_INVALID", problem);
}

function parseSyntax(source: string): Outcome<unknown> {
  try {
    return succeed(JSON.parse(source));
  } catch (error) {
    return refuse("REQUEST_INVALID", `not JSON: ${syntaxReason(error)}`, { cause: error });
  }
}

/** V8 quotes a piece of the input in its message; positions are enough, and the input may hold a secret. */
function syntaxReason(error: unknown): string {
  const position = error instanceof Error ? /position \d+(?: \(line \d+ column \d+\))?/.exec(error.message) : null;
  return position === null ? "the text ends too early or is malformed" : `unexpected text at ${position[0]}`;
}

type Open = { readonly keys: Set<string> | undefined; expectsKey: boolean };

/** One pass over text that may be no JSON at all: what it makes of such text does not matter, as long as it ends. */
function findProblem(source: string, maxDepth: number): string | undefined {
  const open: Open[] = [];
  const token = /["{}[\],]|-?\d[\d.eE+-]*/g;
  for (let match = token.exec(source); match !== null; match = token.exec(source)) {
    const text = match[0];
    const top = open.at(-1);
    if (text === "{" || text === "[") {
      if (open.length >= maxDepth) return `nested deeper than ${maxDepth} levels`;
      open.push({ keys: text === "{" ? new Set() : undefined, expectsKey: text === "{" });
    } else if (text === "}" || text === "]") {
      open.pop();
    } else if (text === ",") {
      if (top?.keys) top.expectsKey = true;
    } else if (text === '"') {
      token.lastIndex = endOfString(source, match.index);
      const problem = findStringProblem(source.slice(match.index, token.lastIndex), top);
      if (problem !== undefined) return problem;
    } else if (Math.abs(Number(text)) === Number.POSITIVE_INFINITY) {
      return `number out of range at position ${match.index}`;
    } else if (isInexactInteger(text)) {
      return `whole number at position ${match.index} is too large to be kept exactly; send it as text`;
    }
  }
  return undefined;
}

/** An id such as 9007199254740993 would arrive as another one, and nobody would be told. */
function isInexactInteger(literal: string): boolean {
  const value = Number(literal);
  if (!/^-?\d{16,400}$/.test(literal) || Number.isSafeInteger(value)) return false;
  // What JavaScript itself writes for a double comes back as that double.
  return String(value) !== literal && BigInt(literal) !== BigInt(value);
}

/**
 * Index after the closing quote. By `indexOf`: one regular expression for a text of 4 million escapes overflows its
 * stack.
 */
function endOfString(source: string, start: number): number {
  let quote = source.indexOf('"', start + 1);
  while (quote !== -1 && isEscaped(source, quote)) quote = source.indexOf('"', quote + 1);
  return quote === -1 ? source.length : quote + 1;
}

function isEscaped(source: string, quote: number): boolean {
  let backslashes = 0;
  while (source[quote - 1 - backslashes] === "\\") backslashes += 1;
  return backslashes % 2 === 1;
}

function findStringProblem(literal: string, top: Open | undefined): string | undefined {
  const isKey = top?.keys !== undefined && top.expectsKey;
  const value = literal.includes("\\") ? decodeString(literal) : literal.slice(1, -1);
  if (value === undefined) return undefined;
  if (!value.isWellFormed()) return "a text holds a lone surrogate, which no UTF-8 consumer can read";
  if (!isKey || top?.keys === undefined) return undefined;
  if (value === FORBIDDEN_KEY) return `the key "${FORBIDDEN_KEY}" is not allowed`;
  if (top.keys.has(value)) return `duplicate key ${JSON.stringify(value.slice(0, 80))}`;
  top.keys.add(value);
  top.expectsKey = false;
  return undefined;
}

/** Undefined for what is no JSON string. */
function decodeString(literal: string): string | undefined {
  const parsed = parseSyntax(literal);
  return parsed.ok && typeof parsed.value === "string" ? parsed.value : undefined;
}

/**
 * One text for equal values: keys sorted by UTF-16 code unit, no white space (RFC 8785 for what JSON.parse yields).
 * Used for digests, so never sorted by locale.
 */
export function toCanonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => toCanonicalJson(item ?? null)).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => `${JSON.stringify(key)}:${toCanonicalJson(member)}`);
    return `{${members.join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/** SHA-256 (hex) over the canonical JSON. */
export function digestOfJson(value: unknown): string {
  return sha256Hex(toCanonicalJson(value));
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
