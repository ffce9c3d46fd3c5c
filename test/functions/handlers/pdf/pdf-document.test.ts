import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PdfBlock } from "../../../../functions/handlers/pdf/page-layout.ts";
import { renderPdf } from "../../../../functions/handlers/pdf/pdf-document.ts";
import { HOSTILE_TEXTS } from "./hostile-texts.ts";
import { readObjects, readPages } from "./read-pdf.ts";

const renderBody = (text: string, title = "") => renderPdf({ title, blocks: [{ kind: "text", text }] });
const contentOf = (bytes: Uint8Array) =>
  readPages(bytes)
    .map((page) => page.content)
    .join("\n");
const textsOf = (bytes: Uint8Array) => readPages(bytes).flatMap((page) => page.runs.map((run) => run.text));

const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 400 }),
  fc.string({ unit: "grapheme", maxLength: 400 }),
  fc.string({
    unit: fc.constantFrom("(", ")", "\\", " ", "\n", "\t", "W", "-", "é", "€", "\u00a0", "\u00ad", ">"),
    maxLength: 900,
  }),
  fc
    .array(fc.constantFrom("word", "ET", "Q", "endstream", ") Tj", "W".repeat(90), "\n"), { maxLength: 300 })
    .map((words) => words.join(" ")),
  fc.constantFrom(...Object.values(HOSTILE_TEXTS)),
);
const anyBlock: fc.Arbitrary<PdfBlock> = fc.oneof(
  { weight: 3, arbitrary: anyText.map((text): PdfBlock => ({ kind: "text", text })) },
  anyText.map((text): PdfBlock => ({ kind: "heading", text })),
  fc
    .tuple(anyText, fc.string({ maxLength: 12 }), fc.integer({ min: -1, max: 20 }))
    .map(([text, marker, depth]): PdfBlock => ({ kind: "item", text, marker, depth })),
);
const anyInput = fc.record({
  title: fc.oneof(
    fc.constant(""),
    anyText.map((text) => text.slice(0, 160)),
  ),
  blocks: fc.array(anyBlock, { maxLength: 6 }),
});

describe("every document", () => {
  test("is made of one text object a page, of whole lines inside the page", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        const { bytes, pages } = renderPdf(input);
        const read = readPages(bytes);
        expect(read).toHaveLength(pages);
        for (const run of read.flatMap((page) => page.runs)) {
          expect(run.text).toMatch(/^[\x20-\x7e\x80-\xff]+$/);
          expect(run.x).toBeGreaterThanOrEqual(56 - 0.01);
          expect(run.right).toBeLessThanOrEqual(539 + 0.01);
          expect(run.y).toBeGreaterThanOrEqual(56);
          expect(run.y).toBeLessThanOrEqual(786);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("has lines that do not overlap, and at most 43 on a page", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        for (const { runs } of readPages(renderPdf({ ...input, title: "" }).bytes)) {
          const ys = [...new Set(runs.map((run) => run.y))];
          expect(ys.length).toBeLessThanOrEqual(43);
          for (const [index, y] of ys.slice(1).entries()) expect((ys[index] ?? 0) - y).toBeGreaterThanOrEqual(16);
        }
      }),
      { numRuns: 200 },
    );
  });

  test("is the same bytes for the same input", () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        const { bytes } = renderPdf(input);
        expect(Buffer.compare(bytes, renderPdf(input).bytes)).toBe(0);
        expect(bytes.byteLength).toBe(bytes.buffer.byteLength);
      }),
      { numRuns: 50 },
    );
  });

  test("holds two standard fonts in WinAnsiEncoding, A4 pages, no date and no id", () => {
    const { bytes } = renderBody("text", "title");
    const [catalog, pages, regular, bold, page] = readObjects(bytes);
    expect(catalog).toBe("<< /Type /Catalog /Pages 2 0 R >>");
    expect(pages).toContain("/Kids [5 0 R] /Count 1 /MediaBox [0 0 595 842]");
    expect(regular).toBe("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>");
    expect(bold).toBe("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>");
    expect(page).toBe("<< /Type /Page /Parent 2 0 R /Contents 6 0 R >>");
    expect(Buffer.from(bytes).toString("latin1")).not.toMatch(/\/(CreationDate|ModDate|ID|Info)/);
  });

  test("has a title in 18 point bold and text in 11 point regular", () => {
    const runs = readPages(renderBody("text", "title").bytes)[0]?.runs;
    expect(runs).toMatchObject([
      { font: "F2", size: 18, x: 56, y: 786, text: "title" },
      { font: "F1", size: 11, x: 56, y: 756, text: "text" },
    ]);
  });
});

describe("strings", () => {
  test("keep indentation and inner spaces", () => {
    const content = contentOf(renderBody("def f():\n    if x:\n        return  1\nA    B").bytes);
    for (const line of ["(    if x:)", "(        return  1)", "(A    B)"]) expect(content).toContain(line);
  });

  test("have parentheses and backslashes escaped and come back whole", () => {
    expect(textsOf(renderBody("((( \\ ) \\( end\\", "(a \\").bytes)).toEqual(["(a \\", "((( \\ ) \\( end\\"]);
  });

  test("hold no control byte, whatever the text holds", () => {
    const { bytes, replacedCharacters } = renderBody("a\tb\u0000c\u0007d\u001b[31me\u200bf\u00a0g\u00ad");
    expect(textsOf(bytes)).toEqual(["a   bcd[31mef\u00a0g\u00ad"]);
    expect(replacedCharacters).toBe(0);
  });

  test("replace what the fonts cannot draw and say how often", () => {
    const { bytes, replacedCharacters } = renderBody("ok 😀 → 日本語 مرحبا Łódź e\u0301");
    expect(textsOf(bytes)).toEqual(["ok ? ? ??? ????? ?ód? é"]);
    expect(replacedCharacters).toBe(12);
  });

  test.each(Object.entries(HOSTILE_TEXTS))("cannot become operators: %s", (_, text) => {
    const { bytes, pages } = renderBody(text, text.slice(0, 160));
    expect(readPages(bytes)).toHaveLength(pages);
  });
});

describe("the text to extract", () => {
  const actualOf = (text: string) => readPages(renderBody(text).bytes)[0]?.runs[0]?.actual;

  test.each([
    ["an indentation", "    if x:"],
    ["a run of spaces", "A    B"],
    ["a fixed space", "5\u00a0€"],
    ["a soft hyphen", "soft\u00adhyphen"],
    ["words of one letter each", "a b c"],
  ])("is given with %s", (_, text) => {
    expect(actualOf(text)).toBe(text);
  });

  test("has a blank after a hyphen that ends a line, so that the hyphen is not taken for a broken word's", () => {
    expect(actualOf("well-\nknown")).toBe("well- ");
  });

  test("is left out where the glyphs say it", () => {
    expect(actualOf("It’s €5 — “quoted” (plainly) well-known")).toBeUndefined();
  });
});
