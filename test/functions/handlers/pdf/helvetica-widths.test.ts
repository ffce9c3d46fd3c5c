import { expect, test } from "vitest";
import {
  FIRST_WIDTH_BYTE,
  HELVETICA_BOLD_WIDTHS,
  HELVETICA_WIDTHS,
} from "../../../../functions/handlers/pdf/helvetica-widths.ts";
import { encodeWinAnsi } from "../../../../functions/handlers/pdf/win-ansi.ts";

const widthOf = (widths: readonly number[], character: string) =>
  widths[encodeWinAnsi(character).bytes.charCodeAt(0) - FIRST_WIDTH_BYTE];

test("both tables have one width for every byte from 0x20 to 0xFF", () => {
  expect(HELVETICA_WIDTHS).toHaveLength(224);
  expect(HELVETICA_BOLD_WIDTHS).toHaveLength(224);
  for (const width of [...HELVETICA_WIDTHS, ...HELVETICA_BOLD_WIDTHS]) expect(width).toBeGreaterThan(0);
});

test.each([
  [" ", 278, 278],
  ["i", 222, 278],
  ["W", 944, 944],
  ["@", 1015, 975],
  ["€", 556, 556],
  ["…", 1000, 1000],
  ["•", 350, 350],
  ["’", 222, 278],
  ["\u00a0", 278, 278],
  ["\u00ad", 333, 333],
  ["é", 556, 556],
  ["ÿ", 500, 556],
])("%j is %d wide, and %d in bold, as in Adobe's metrics", (character, regular, bold) => {
  expect(widthOf(HELVETICA_WIDTHS, character)).toBe(regular);
  expect(widthOf(HELVETICA_BOLD_WIDTHS, character)).toBe(bold);
});

test("an accented letter is as wide as its letter", () => {
  for (const accented of "ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖÙÚÛÜÝàáâãäåçèéêëòóôõöùúûüýÿšžŠŽ") {
    const [letter = ""] = accented.normalize("NFD");
    expect(widthOf(HELVETICA_WIDTHS, accented)).toBe(widthOf(HELVETICA_WIDTHS, letter));
    expect(widthOf(HELVETICA_BOLD_WIDTHS, accented)).toBe(widthOf(HELVETICA_BOLD_WIDTHS, letter));
  }
});
