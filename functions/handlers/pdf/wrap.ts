/**
 * Lines no wider than a given width, by real widths and in linear time. Spaces inside a line and before its first word
 * are kept, because they are the layout of code and tables; only the spaces at a break and at the end go.
 */

const SPACE = 0x20;

/** Advance width of one code point, in the unit of the widest line. */
export type Measure = (codePoint: number) => number;

/**
 * Wraps one line of text (no line breaks in it) at U+0020. A word longer than a line is cut between code points; where
 * not even one of them fits, it stands alone, so every width ends. An indentation too wide for anything after it goes.
 */
export function wrapText(text: string, maxWidth: number, measure: Measure): string[] {
  const lines: string[] = [];
  const spaceWidth = measure(SPACE);
  let start = 0;
  let end = 0;
  let width = 0;
  for (let wordStart = skipSpaces(text, 0); wordStart < text.length; wordStart = skipSpaces(text, end)) {
    let gap = (wordStart - end) * spaceWidth;
    const wordEnd = findWordEnd(text, wordStart);
    const wordWidth = measureText(text, wordStart, wordEnd, measure);
    if (end > start && width + gap + wordWidth > maxWidth) {
      lines.push(text.slice(start, end));
      [start, width, gap] = [wordStart, 0, 0];
    }
    width += gap + wordWidth;
    end = wordEnd;
    if (width <= maxWidth) continue;
    const cut = cutWord({ text, start, wordStart, end, gap, maxWidth, measure }, lines);
    start = cut.start;
    width = cut.width;
  }
  lines.push(text.slice(start, end));
  return lines;
}

/** Width of a text between two indices. */
export function measureText(text: string, start: number, end: number, measure: Measure): number {
  let width = 0;
  for (let index = start; index < end; ) {
    const codePoint = text.codePointAt(index) ?? SPACE;
    width += measure(codePoint);
    index += codePoint > 0xffff ? 2 : 1;
  }
  return width;
}

type LongWord = {
  readonly text: string;
  readonly start: number;
  readonly wordStart: number;
  readonly end: number;
  readonly gap: number;
  readonly maxWidth: number;
  readonly measure: Measure;
};

/** Adds the full pieces of a word to the lines; what is left is the line to go on with. */
function cutWord(word: LongWord, lines: string[]): { start: number; width: number } {
  const { text, wordStart, maxWidth, measure } = word;
  let start = word.start;
  let width = word.gap;
  for (let index = wordStart; index < word.end; ) {
    const codePoint = text.codePointAt(index) ?? SPACE;
    const advance = measure(codePoint);
    if (width + advance > maxWidth) {
      if (index > wordStart) lines.push(text.slice(start, index));
      start = index;
      width = 0;
    }
    width += advance;
    index += codePoint > 0xffff ? 2 : 1;
  }
  return { start, width };
}

function skipSpaces(text: string, from: number): number {
  let index = from;
  while (text.charCodeAt(index) === SPACE) index += 1;
  return index;
}

function findWordEnd(text: string, wordStart: number): number {
  const space = text.indexOf(" ", wordStart);
  return space === -1 ? text.length : space;
}
