import { CST, Lexer, Parser, type YAMLError } from "yaml";
import { quoted, toVisible } from "../contract/printable.ts";
import { firstCodePoints } from "../contract/text.ts";
import type { Report } from "./finding.ts";

/** The YAML of a frontmatter before it has a meaning: nesting is bounded and what changes a value's type is refused. */

/** Collections inside each other, the top mapping included; `metadata` needs two. */
export const MAX_NESTING = 16;

/** After a few, YAML errors only repeat the first. */
const MAX_SYNTAX_FINDINGS = 5;

const MAX_REASON_CODE_POINTS = 80;

export type Scan = {
  readonly tokens: readonly CST.Token[];
  /** Where the last token begins, UTF-16 units from the start of the header. */
  readonly lastOffset: number;
  /** Lines with a forbidden indicator, reported once each; what else is wrong there follows from it. */
  readonly indicatedLines: ReadonlySet<number>;
};

export type Reader = {
  readonly report: Report;
  /** Line in the file for an offset in the header. */
  readonly lineAt: (offset: number) => number;
};

/**
 * Runs the lexer and the parser step by step, so that nesting is known while it grows: composing 60,000 brackets
 * would exhaust the stack. Undefined when it is too deep.
 */
export function scanTokens(source: string, reader: Reader): Scan | undefined {
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
  const message = `${quoted(lexeme)} is ${indicator.what}, which is not allowed; if it is text, quote the whole value`;
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

export function reportSyntax(errors: readonly YAMLError[], scan: Scan, { report, lineAt }: Reader): void {
  const lines = new Set<number>();
  for (const error of errors) {
    // A quote that is never closed is an error at the end of the header; a person looks for where it was opened.
    const line = lineAt(Math.min(error.pos[0], scan.lastOffset));
    if (scan.indicatedLines.has(line) || lines.has(line) || lines.size === MAX_SYNTAX_FINDINGS) continue;
    lines.add(line);
    const reason = SYNTAX_MESSAGES.get(error.code) ?? toVisible(firstCodePoints(error.message, MAX_REASON_CODE_POINTS));
    report({ grade: "refused", line, rule: "yaml-syntax", message: `not valid YAML in this line: ${reason}` });
  }
}
