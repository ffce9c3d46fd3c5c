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
 * one object, the key `__proto__`, nesting beyond `maxDepth`, text with a lone surrogate, numbers that overflow.
 */
export function parseStrictJson(text: string, { maxDepth }: JsonOptions): Outcome<unknown> {
  const source = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  if (source.trim() === "") return refuse("REQUEST_INVALID", "JSON expected, got nothing");
  const unparsed = parseSyntax(source);
  if (!unparsed.ok) return unparsed;
  const problem = findProblem(source, maxDepth);
  return problem === undefined ? unparsed : refuse("REQUEST_INVALID", problem);
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

/** One pass over text that is known to be valid JSON, so a token's first character says what it is. */
function findProblem(source: string, maxDepth: number): string | undefined {
  const open: Open[] = [];
  const token = /"(?:[^"\\]|\\.)*"|[{}[\],]|-?\d[\d.eE+-]*/gs;
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
    } else if (text.startsWith('"')) {
      const problem = findStringProblem(text, top);
      if (problem !== undefined) return problem;
    } else if (!Number.isFinite(Number(text))) {
      return `number out of range: ${text.slice(0, 32)}`;
    }
  }
  return undefined;
}

function findStringProblem(literal: string, top: Open | undefined): string | undefined {
  const isKey = top?.keys !== undefined && top.expectsKey;
  const plain = !literal.includes("\\");
  const value: string = plain ? literal.slice(1, -1) : JSON.parse(literal);
  if (!value.isWellFormed()) return "a text holds a lone surrogate, which no UTF-8 consumer can read";
  if (!isKey || top?.keys === undefined) return undefined;
  if (value === FORBIDDEN_KEY) return `the key "${FORBIDDEN_KEY}" is not allowed`;
  if (top.keys.has(value)) return `duplicate key ${JSON.stringify(value.slice(0, 80))}`;
  top.keys.add(value);
  top.expectsKey = false;
  return undefined;
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
