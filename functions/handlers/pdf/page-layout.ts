/**
 * A title and blocks of text as positioned lines on A4 pages. Positions are decided here and nowhere else, so the
 * number of pages is the number of pages made; counting lines a second time for the answer is how the two come to
 * differ. Lengths are in points (1/72 inch), from the lower left corner of the page.
 */
import { FIRST_WIDTH_BYTE, HELVETICA_BOLD_WIDTHS, HELVETICA_WIDTHS } from "./helvetica-widths.ts";
import { encodeWinAnsi } from "./win-ansi.ts";
import { type Measure, measureText, wrapText } from "./wrap.ts";

export type PdfBlock =
  /** Body text: its line breaks, blank lines, indentation and tabs stay. */
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "heading"; readonly text: string }
  /** `depth` 0 is the outermost list. */
  | { readonly kind: "item"; readonly text: string; readonly marker: string; readonly depth: number };

/** `text` is in WinAnsi bytes, one character each. */
export type Run = { readonly x: number; readonly text: string };
export type PlacedLine = { readonly y: number; readonly style: Style; readonly runs: readonly Run[] };
export type Layout = { readonly pages: readonly (readonly PlacedLine[])[]; readonly replacedCharacters: number };

/** `font` is a name in the resources of the page; `drop` is the distance to the baseline above. */
export type Style = {
  readonly font: "F1" | "F2";
  readonly size: number;
  readonly drop: number;
  readonly measure: Measure;
};

export const PAGE_WIDTH = 595;
export const PAGE_HEIGHT = 842;
const MARGIN = 56;
const TOP = PAGE_HEIGHT - MARGIN;
const RIGHT = PAGE_WIDTH - MARGIN;
const MAX_BODY_LINES = 43;
const DROP_BELOW_TITLE = 30;
const TAB_COLUMNS = 4;

/** One step holds a two-digit number and its gap; the deepest list still has half a line of room. */
const LIST_STEP = 21;
const MARKER_GAP = 5;
const MAX_MARKER_WIDTH = 60;
const MAX_DEPTH = 8;
/** A heading that has no two lines of its text below it goes to the next page. */
const LINES_KEPT_BELOW_HEADING = 2;

const measureRegular: Measure = (byte) => HELVETICA_WIDTHS[byte - FIRST_WIDTH_BYTE] ?? 0;
const measureBold: Measure = (byte) => HELVETICA_BOLD_WIDTHS[byte - FIRST_WIDTH_BYTE] ?? 0;

const BODY: Style = { font: "F1", size: 11, drop: 16, measure: measureRegular };
const HEADING: Style = { font: "F2", size: 13, drop: 16, measure: measureBold };
const HEADING_TOP: Style = { ...HEADING, drop: 22 };
const TITLE: Style = { font: "F2", size: 18, drop: 22, measure: measureBold };

/** A line before it has a place. `linesKeptBelow` must stand on the same page. */
type Line = { readonly style: Style; readonly runs: readonly Run[]; readonly linesKeptBelow: number };
type Lines = { readonly lines: readonly Line[]; readonly replacedCharacters: number };

export function layOut(title: string, blocks: readonly PdfBlock[]): Layout {
  const head = toTitleLines(title);
  const parts = blocks.map(toLines);
  return {
    pages: place(
      head.lines,
      parts.flatMap((part) => part.lines),
    ),
    replacedCharacters: parts.reduce((sum, part) => sum + part.replacedCharacters, head.replacedCharacters),
  };
}

function toLines(block: PdfBlock): Lines {
  if (block.kind === "heading") return toHeadingLines(block.text);
  if (block.kind === "item") return toItemLines(block);
  const { bytes, replacedCharacters } = encodeWinAnsi(block.text);
  return { lines: wrapBody(bytes, MARGIN).map((text) => toLine(BODY, MARGIN, text)), replacedCharacters };
}

function toTitleLines(title: string): Lines {
  const { bytes, replacedCharacters } = encodeSingleLine(title);
  if (bytes === "") return { lines: [], replacedCharacters };
  return { lines: wrapStyled(TITLE, bytes).map((text) => toLine(TITLE, MARGIN, text)), replacedCharacters };
}

function toHeadingLines(heading: string): Lines {
  const { bytes, replacedCharacters } = encodeSingleLine(heading);
  const lines = wrapStyled(HEADING, bytes).map((text, index, all) => ({
    ...toLine(index === 0 ? HEADING_TOP : HEADING, MARGIN, text),
    linesKeptBelow: Math.min(all.length - 1 - index, LINES_KEPT_BELOW_HEADING) + LINES_KEPT_BELOW_HEADING,
  }));
  return { lines, replacedCharacters };
}

function toItemLines(item: { readonly text: string; readonly marker: string; readonly depth: number }): Lines {
  const marker = encodeSingleLine(item.marker);
  const text = encodeWinAnsi(item.text);
  const replacedCharacters = marker.replacedCharacters + text.replacedCharacters;
  const left = MARGIN + LIST_STEP * Math.min(Math.max(Math.trunc(item.depth) || 0, 0), MAX_DEPTH);
  const width = (measureText(marker.bytes, 0, marker.bytes.length, BODY.measure) * BODY.size) / 1000;
  const hangs = width <= MAX_MARKER_WIDTH;
  const x = left + (hangs ? Math.max(LIST_STEP, width + MARKER_GAP) : LIST_STEP);
  const [first = "", ...rest] = wrapBody(hangs ? text.bytes : `${marker.bytes} ${text.bytes}`, x);
  const markerRun = { x: x - MARKER_GAP - width, text: hangs ? marker.bytes : "" };
  const firstLine = { style: BODY, runs: [markerRun, { x, text: first }].filter(isVisible), linesKeptBelow: 0 };
  return { lines: [firstLine, ...rest.map((line) => toLine(BODY, x, line))], replacedCharacters };
}

function wrapBody(bytes: string, x: number): string[] {
  const maxWidth = ((RIGHT - x) * 1000) / BODY.size;
  // A line break ends a line and does not begin one: the text "a\n" is one line.
  const text = bytes.endsWith("\n") ? bytes.slice(0, -1) : bytes;
  return text.split("\n").flatMap((line) => wrapText(expandTabs(line), maxWidth, BODY.measure));
}

function wrapStyled(style: Style, bytes: string): string[] {
  return wrapText(bytes, ((RIGHT - MARGIN) * 1000) / style.size, style.measure);
}

function encodeSingleLine(text: string): { bytes: string; replacedCharacters: number } {
  const { bytes, replacedCharacters } = encodeWinAnsi(text);
  return { bytes: bytes.replace(/[ \n\t\xa0]+/g, " ").trim(), replacedCharacters };
}

function expandTabs(line: string): string {
  if (!line.includes("\t")) return line;
  const [first = "", ...cells] = line.split("\t");
  let column = first.length;
  let expanded = first;
  for (const cell of cells) {
    const blanks = TAB_COLUMNS - (column % TAB_COLUMNS);
    column += blanks + cell.length;
    expanded += " ".repeat(blanks) + cell;
  }
  return expanded;
}

function toLine(style: Style, x: number, text: string): Line {
  return { style, runs: [{ x, text }].filter(isVisible), linesKeptBelow: 0 };
}

function isVisible(run: Run): boolean {
  return run.text !== "";
}

/**
 * Fills pages from the top; a page holds what fits above the bottom margin, and never more than 43 lines below a title.
 */
function place(title: readonly Line[], body: readonly Line[]): PlacedLine[][] {
  let page: PlacedLine[] = [];
  const pages = [page];
  let y = TOP;
  let bodyLines = 0;
  const put = (line: Line, drop: number, counted: boolean) => {
    const fits = y - drop - line.linesKeptBelow * BODY.drop >= MARGIN;
    if (page.length > 0 && !(fits && bodyLines + line.linesKeptBelow < MAX_BODY_LINES)) {
      page = [];
      pages.push(page);
      bodyLines = 0;
    }
    y = page.length === 0 ? TOP : y - drop;
    bodyLines += counted ? 1 : 0;
    page.push({ y, style: line.style, runs: line.runs });
  };
  for (const line of title) put(line, line.style.drop, false);
  for (const [index, line] of body.entries()) {
    put(line, index === 0 && title.length > 0 ? DROP_BELOW_TITLE : line.style.drop, true);
  }
  return pages;
}
