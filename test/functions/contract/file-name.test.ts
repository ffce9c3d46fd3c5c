import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ARTIFACT_EXTENSIONS } from "../../../functions/contract/artifact.ts";
import {
  isSafeFileName,
  MAX_FILE_NAME_CODE_POINTS,
  toContentDisposition,
  toSafeFileName,
} from "../../../functions/contract/file-name.ts";

const toPdfName = (wanted: string | undefined) => toSafeFileName(wanted, { extension: "pdf", fallback: "document" });

/** Texts that are mostly what a name may be broken with. */
const hostileText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      ...["con", "COM¹", "nul", ".pdf", ".PDF", ".md", "pdf", ".", "..", "/", "\\", ":", "%2f", "-", "_", " ", "\t"],
      ...['"', ";", "\r\n", "\0", "\u0085", "\u0301", "\u20ac", "\ufe0f", "\u200d", "\u202e", "\ud83d", "\ude00", "😀"],
      ...["é", "Å", "日", "\u1100\u1161", "กำ", "א", "Ａ", "¹", "$", "a", "b".repeat(70)],
    ),
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
  ),
  maxLength: 120,
});
const anyText = fc.oneof(hostileText, fc.string({ unit: "binary", maxLength: 300 }));
const anyExtension = fc.constantFrom(...ARTIFACT_EXTENSIONS.values());

const WINDOWS_DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *$/i;

describe("a safe file name", () => {
  test.each([
    ["../../etc/passwd", "passwd.pdf"],
    ["..\\..\\x.pdf", "x.pdf"],
    ["/abs/y.pdf", "y.pdf"],
    ["%2e%2e%2fz.pdf", "2e2e2fz.pdf"],
    ["C:evil.pdf", "Cevil.pdf"],
    ["a/b", "b.pdf"],
    ["a/", "a.pdf"],
    ["a/ \u200b/..", "document.pdf"],
    ['a"; filename="b.exe', "a-filenameb.exe.pdf"],
    ["a\r\nSet-Cookie: x=1", "a-Set-Cookie-x1.pdf"],
    ["o'neil (1)*.pdf", "oneil-1.pdf"],
  ])("is one segment without separators or quotes: %j", (wanted, name) => {
    expect(toPdfName(wanted)).toBe(name);
  });

  test.each([
    ["CON", "_CON.pdf"],
    ["nul.pdf", "_nul.pdf"],
    ["Com1.tar.pdf", "_Com1.tar.pdf"],
    ["LPT9", "_LPT9.pdf"],
    ["aux", "_aux.pdf"],
    ["COM¹", "_COM¹.pdf"],
    ["CON .txt", "_CON.pdf"],
    ["con.md.pdf", "_con.pdf"],
    ["conference.pdf", "conference.pdf"],
    ["COM", "COM.pdf"],
    ["COM10", "COM10.pdf"],
  ])("is no device of Windows: %j", (wanted, name) => {
    expect(toPdfName(wanted)).toBe(name);
  });

  test.each([
    undefined,
    "",
    "   ",
    "...",
    "-",
    "_",
    "😀",
    "❤️",
    '"""',
    ".pdf",
    "pdf",
    "\u202e",
    "\u0301",
    "\ufe0f",
    "\ud83d",
  ])("falls back when no letter and no digit is left: %j", (wanted) => {
    expect(toPdfName(wanted)).toBe("document.pdf");
  });

  test.each([
    ["-rf", "rf.pdf"],
    [".htaccess", "htaccess.pdf"],
    ["--help", "help.pdf"],
  ])("is neither hidden nor an option: %j", (wanted, name) => {
    expect(toPdfName(wanted)).toBe(name);
  });

  test.each([
    ["report.pdf.exe", "report-pdf.exe.pdf"],
    ["REPORT.PDF", "REPORT.pdf"],
    ["a.pdf.", "a.pdf"],
    ["a.pdf .pdf", "a.pdf"],
    ["a.md", "a.pdf"],
    ["run.sh", "run.sh.pdf"],
    ["x.html", "x.html.pdf"],
    ["v1.2", "v1.2.pdf"],
    [`${"a".repeat(72)}.pdfbbb`, `${"a".repeat(72)}.pdf`],
  ])("has the extension of its type once: %j", (wanted, name) => {
    expect(toPdfName(wanted)).toBe(name);
  });

  test.each([
    ["日本語", "日本語.pdf"],
    ["Łódź report", "Łódź-report.pdf"],
    ["Cafe\u0301", "Café.pdf"],
    ["e\u20ac\u0301", "é.pdf"],
    ["हिन्दी", "हिन्दी.pdf"],
    ["שלום", "שלום.pdf"],
    ["a\u200bb\u202ec", "abc.pdf"],
  ])("keeps letters of every script: %j", (wanted, name) => {
    expect(toPdfName(wanted)).toBe(name);
  });

  test("is cut to 80 code points and 255 bytes, and never between a letter and its mark", () => {
    expect(toPdfName("x".repeat(200))).toBe(`${"x".repeat(76)}.pdf`);
    expect(toPdfName("x\u0323\u0307".repeat(100))).toBe(`${"x\u0323\u0307".normalize("NFC").repeat(38)}.pdf`);
    expect(toPdfName("𠀀".repeat(100))).toBe(`${"𠀀".repeat(59)}.pdf`);
    expect(toPdfName(`con.${"x".repeat(100)}`)).toBe(`_con.${"x".repeat(71)}.pdf`);
    expect(toPdfName(`q${"\u0323".repeat(200)}`)).toBe(`q${"\u0323".repeat(75)}.pdf`);
  });

  test("holds for any text: one plain segment, no device, one extension, short enough", () => {
    fc.assert(
      fc.property(anyText, anyExtension, (wanted, extension) => {
        const name = toSafeFileName(wanted, { extension, fallback: "document" });
        expect(name).toMatch(/^[\p{L}\p{M}\p{N}._-]+$/u);
        expect(name).not.toMatch(/^[.\-\p{M}]|\p{Default_Ignorable_Code_Point}/u);
        expect(name.split(".")[0]).not.toMatch(WINDOWS_DEVICE);
        expect(name.endsWith(`.${extension}`)).toBe(true);
        expect(name.toLowerCase().match(new RegExp(`\\.${extension}(?=\\.|$)`, "g"))).toHaveLength(1);
        expect([...name].length).toBeLessThanOrEqual(MAX_FILE_NAME_CODE_POINTS);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
        expect(name.isWellFormed() && name === name.normalize("NFC")).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  test("is always one that the broker accepts", () => {
    fc.assert(
      fc.property(anyText, anyExtension, (wanted, extension) => {
        const name = toSafeFileName(wanted, { extension, fallback: "document" });
        expect(isSafeFileName(name, extension), name).toBe(true);
        expect(toSafeFileName(name, { extension, fallback: "other" })).toBe(name);
      }),
      { numRuns: 5_000 },
    );
  });

  test("takes no time for a quarter of a megabyte of anything", () => {
    const started = performance.now();
    for (const part of ["-", " ", "/", ".pdf", "\u0301", "a-", "\u200b"]) {
      toPdfName(`${part.repeat(250_000 / part.length)}x`);
    }
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});

describe("what the broker refuses as a name", () => {
  test.each([
    "../x.pdf",
    "x.txt",
    "x",
    "CON.pdf",
    " x.pdf",
    "x.pdf ",
    ".pdf",
    "x\0.pdf",
    `${"x".repeat(77)}.pdf`,
    "e\u0301.pdf",
  ])("%j", (name) => {
    expect(isSafeFileName(name, "pdf")).toBe(false);
  });
});

describe("Content-Disposition", () => {
  const HEADER = /^attachment; filename="([\x20-\x7e]+)"; filename\*=UTF-8''([A-Za-z0-9%._~-]+)$/;

  test.each([
    ['a"; filename="b.exe', "a__ filename=_b.exe"],
    ["o'neil (1)*.pdf", "o'neil (1)_.pdf"],
    ["a\r\nSet-Cookie: x=1", "aSet-Cookie_ x=1"],
    ["Café.pdf", "Cafe.pdf"],
    ["日本語.pdf", "download.pdf"],
    ["＂／＼.pdf", "download.pdf"],
    ["a＂b.pdf", "a_b.pdf"],
  ])("gives old clients a plain name for %j", (name, ascii) => {
    expect(HEADER.exec(toContentDisposition(name))?.[1]).toBe(ascii);
  });

  test("is one line of printable ASCII with each parameter once, and decodes to the name", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const name = text === "" ? "x" : text;
        const [, ascii = '"', encoded = ""] = HEADER.exec(toContentDisposition(name)) ?? [];
        expect(ascii).not.toMatch(/["\\/%;]/);
        expect(decodeURIComponent(encoded)).toBe(name.toWellFormed());
      }),
      { numRuns: 2_000 },
    );
  });
});
