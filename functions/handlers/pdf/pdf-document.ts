/**
 * A PDF 1.4 file of text on A4 pages: same input, same bytes. The only input that reaches a page is a string operand
 * with its three special characters escaped, so nothing typed can become an operator. A PDF library would be the
 * obvious choice; the fastest one measured is more than ten times slower.
 */
import { deflateSync } from "node:zlib";
import { layOut, PAGE_HEIGHT, PAGE_WIDTH, type PdfBlock, type PlacedLine, type Run } from "./page-layout.ts";
import { decodeWinAnsi } from "./win-ansi.ts";

export type RenderedPdf = {
  readonly bytes: Uint8Array;
  /** Counted from the pages in the file; at least 1. */
  readonly pages: number;
  /** Characters the fonts cannot draw, each now a "?" (or a "-" for another hyphen or a minus). */
  readonly replacedCharacters: number;
};

const BEFORE_PAGES = 4;

/**
 * What pdftotext 22.12 does not read as it stands: an indentation goes, a run of blanks becomes one or parts two
 * columns, U+00A0 becomes a space and U+00AD a hyphen, and words of one letter each ("a b c") are glued to one word.
 */
const MISREAD = /^ | {2}|[\xa0\xad]|^[^ ](?: [^ ])+$/;

/** Any text is accepted: what cannot be drawn is replaced and counted, never an exception. */
export function renderPdf(input: { readonly title: string; readonly blocks: readonly PdfBlock[] }): RenderedPdf {
  const { pages, replacedCharacters } = layOut(input.title, input.blocks);
  const kids = pages.map((_, index) => `${BEFORE_PAGES + 1 + index * 2} 0 R`).join(" ");
  const objects = [
    latin1("<< /Type /Catalog /Pages 2 0 R >>"),
    latin1(
      `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} /MediaBox [0 0 ${PAGE_WIDTH} ${PAGE_HEIGHT}] ` +
        "/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>",
    ),
    toFont("Helvetica"),
    toFont("Helvetica-Bold"),
    ...pages.flatMap((lines, index) => [
      latin1(`<< /Type /Page /Parent 2 0 R /Contents ${BEFORE_PAGES + 2 + index * 2} 0 R >>`),
      toStream(toContent(lines)),
    ]),
  ];
  return { bytes: toFile(objects), pages: pages.length, replacedCharacters };
}

function toFont(name: string): Uint8Array {
  return latin1(`<< /Type /Font /Subtype /Type1 /BaseFont /${name} /Encoding /WinAnsiEncoding >>`);
}

function toStream(content: string): Uint8Array {
  const packed = deflateSync(latin1(content));
  return join([latin1(`<< /Length ${packed.length} /Filter /FlateDecode >>\nstream\n`), packed, latin1("\nendstream")]);
}

function toContent(lines: readonly PlacedLine[]): string {
  let content = "BT\n";
  let current = "";
  for (const { y, style, runs } of lines) {
    const font = `/${style.font} ${style.size} Tf\n`;
    if (font !== current && runs.length > 0) {
      content += font;
      current = font;
    }
    for (const run of runs) content += `1 0 0 1 ${toNumber(run.x)} ${y} Tm\n${toShow(run, run === runs.at(-1))}`;
  }
  return `${content}ET`;
}

function toShow(run: Run, last: boolean): string {
  const show = `(${run.text.replace(/[\\()]/g, "\\$&")}) Tj\n`;
  const actual = toActualText(run.text, last);
  return actual === undefined ? show : `/Span << /ActualText <${actual}> >> BDC\n${show}EMC\n`;
}

/**
 * What a reader should extract, in hexadecimal, where it would not get it from the glyphs. Measured with pdftotext
 * 22.12: a hyphen at the end of a line is swallowed together with the break, and a blank after it prevents that.
 */
function toActualText(text: string, last: boolean): string | undefined {
  const hyphenated = last && text.endsWith("-");
  if (!hyphenated && !MISREAD.test(text)) return undefined;
  const characters = `\ufeff${decodeWinAnsi(text)}${hyphenated ? " " : ""}`;
  return Buffer.from(characters, "utf16le").swap16().toString("hex");
}

/** At most two decimals, for readers that know no exponent. */
function toNumber(value: number): string {
  return String(Number(value.toFixed(2)));
}

function toFile(objects: readonly Uint8Array[]): Uint8Array {
  // ISO 32000-1, 7.5.2: four bytes above 127 tell transfer programs that the file is binary.
  const header = latin1("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n");
  const numbered = objects.map((object, index) => join([latin1(`${index + 1} 0 obj\n`), object, latin1("\nendobj\n")]));
  let offset = header.length;
  const entries = numbered.map(({ length }) => {
    const entry = `${String(offset).padStart(10, "0")} 00000 n \n`;
    offset += length;
    return entry;
  });
  const size = objects.length + 1;
  const tail =
    `xref\n0 ${size}\n0000000000 65535 f \n${entries.join("")}` +
    `trailer\n<< /Size ${size} /Root 1 0 R >>\nstartxref\n${offset}\n%%EOF\n`;
  return join([header, ...numbered, latin1(tail)]);
}

function latin1(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

/**
 * A buffer of its own and not a slice of Node's pool: posted from a worker, a slice would carry the whole pool along.
 */
function join(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}
