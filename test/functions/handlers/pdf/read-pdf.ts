/**
 * Reads back a file that the writer made, by a grammar that allows nothing else: one unexpected byte between two
 * operators throws, so "no input becomes an operator" is checked by reading and not by searching for known attacks.
 */
import { inflateSync } from "node:zlib";
import {
  FIRST_WIDTH_BYTE,
  HELVETICA_BOLD_WIDTHS,
  HELVETICA_WIDTHS,
} from "../../../../functions/handlers/pdf/helvetica-widths.ts";

/** `text` in WinAnsi bytes, `x` and `y` in points, `right` where the last glyph ends. */
export type ReadRun = {
  font: string;
  size: number;
  x: number;
  y: number;
  text: string;
  right: number;
  actual?: string;
};
export type ReadPage = { content: string; runs: ReadRun[] };

const STRING = String.raw`\(((?:[^\\()]|\\[\\()])*)\) Tj\n`;
const OPERATOR = new RegExp(
  [
    String.raw`/(F[12]) (\d+) Tf\n`,
    String.raw`1 0 0 1 (\d+(?:\.\d+)?) (\d+) Tm\n(?:/Span << /ActualText <([0-9a-f]+)> >> BDC\n${STRING}EMC\n|${STRING})`,
  ].join("|"),
  "y",
);

/** The bodies of the objects, found by the offsets of the cross-reference table. */
export function readObjects(bytes: Uint8Array): string[] {
  const file = Buffer.from(bytes).toString("latin1");
  const start = Number(/startxref\n(\d+)\n%%EOF\n$/.exec(file)?.[1]);
  const [table] = /^xref\n0 \d+\n0000000000 65535 f \n(?:\d{10} 00000 n \n)+trailer\n/.exec(file.slice(start)) ?? [""];
  const offsets = [...table.matchAll(/(\d{10}) 00000 n/g)].map((match) => Number(match[1]));
  return offsets.map((offset, index) => {
    const head = `${index + 1} 0 obj\n`;
    if (!file.startsWith(head, offset)) throw new Error(`object ${index + 1} is not at offset ${offset}`);
    const next = offsets[index + 1] ?? start;
    const object = file.slice(offset + head.length, next);
    if (!object.endsWith("\nendobj\n")) throw new Error(`object ${index + 1} does not end before offset ${next}`);
    return object.slice(0, -"\nendobj\n".length);
  });
}

export function readPages(bytes: Uint8Array): ReadPage[] {
  return readObjects(bytes).flatMap((object) => {
    const [head, length] = /^<< \/Length (\d+) \/Filter \/FlateDecode >>\nstream\n/.exec(object) ?? [];
    if (head === undefined) return [];
    const packed = object.slice(head.length, -"\nendstream".length);
    if (packed.length !== Number(length)) throw new Error(`stream of ${packed.length} bytes says ${length}`);
    const content = inflateSync(Buffer.from(packed, "latin1")).toString("latin1");
    return [{ content, runs: readRuns(content) }];
  });
}

function readRuns(content: string): ReadRun[] {
  const inner = /^BT\n(.*)ET$/s.exec(content)?.[1];
  if (inner === undefined) throw new Error("content is not one text object");
  const runs: ReadRun[] = [];
  let font = "";
  let size = 0;
  OPERATOR.lastIndex = 0;
  while (OPERATOR.lastIndex < inner.length) {
    const at = OPERATOR.lastIndex;
    const match = OPERATOR.exec(inner);
    if (match === null) throw new Error(`unexpected content at ${at}: ${JSON.stringify(inner.slice(at, at + 60))}`);
    if (match[1] !== undefined) {
      [font, size] = [match[1], Number(match[2])];
      continue;
    }
    const text = (match[6] ?? match[7] ?? "").replace(/\\(.)/g, "$1");
    const x = Number(match[3]);
    const right = x + (widthOf(font, text) * size) / 1000;
    const actual = match[5] === undefined ? {} : { actual: fromHex(match[5]) };
    runs.push({ font, size, x, y: Number(match[4]), text, right, ...actual });
  }
  return runs;
}

function fromHex(hex: string): string {
  return new TextDecoder("utf-16be", { ignoreBOM: false }).decode(Buffer.from(hex, "hex"));
}

function widthOf(font: string, text: string): number {
  const widths = font === "F1" ? HELVETICA_WIDTHS : HELVETICA_BOLD_WIDTHS;
  return [...text].reduce((sum, byte) => sum + (widths[byte.charCodeAt(0) - FIRST_WIDTH_BYTE] ?? Number.NaN), 0);
}
