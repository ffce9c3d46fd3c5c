import { describe, expect, test } from "vitest";
import { createPdf } from "../../../functions/handlers/create-pdf.ts";
import { callHandler, refusalsOf } from "./call-handler.ts";
import { readPages } from "./pdf/read-pdf.ts";

const linesOf = (given: Readonly<Record<string, unknown>>) =>
  readPages(callHandler(createPdf, given).bytes).flatMap(({ runs }) => runs.map(({ text }) => text));

describe("create_pdf", () => {
  test("answers with the number of pages in the file and nothing that did not happen", () => {
    const { output, name, mediaType, bytes } = callHandler(createPdf, { body: "line\n".repeat(44) });
    expect(output).toEqual({ created: true, pages: 2 });
    expect(readPages(bytes)).toHaveLength(2);
    expect({ name, mediaType }).toEqual({ name: "document.pdf", mediaType: "application/pdf" });
  });

  test("gives equal bytes for equal arguments", () => {
    const given = { title: "Minutes", body: "We met.\n\tTwice." };
    expect(callHandler(createPdf, given).bytes).toEqual(callHandler(createPdf, { ...given }).bytes);
  });

  test.each(["", " ", "\n\t", "\u200b", "\u2800", "\u3164\u200d", "\u0000", "\ufe0f"])(
    "refuses the blank body %j",
    (body) => {
      expect(refusalsOf(createPdf, { body }).map(({ path }) => path)).toEqual(["/body"]);
    },
  );

  test("takes 12,000 characters of body, however many bytes they have, and not one more", () => {
    expect(callHandler(createPdf, { body: "😀".repeat(12_000) }).output).toMatchObject({ replaced_characters: 12_000 });
    for (const character of ["a", "😀"]) {
      expect(refusalsOf(createPdf, { body: character.repeat(12_001) }).map(({ path }) => path)).toEqual(["/body"]);
    }
  });

  test("cuts a title at 160 characters, and says so", () => {
    const whole = callHandler(createPdf, { title: "é".repeat(160), body: "b" });
    expect(whole.output).toEqual({ created: true, pages: 1 });
    const cut = callHandler(createPdf, { title: "é".repeat(161), body: "b" });
    expect(cut.output).toEqual({ created: true, pages: 1, title_truncated: true });
    expect(cut.bytes).toEqual(whole.bytes);
    const emoji = callHandler(createPdf, { title: "😀".repeat(161), body: "b" });
    expect(emoji.output).toMatchObject({ title_truncated: true, replaced_characters: 160 });
  });

  test.each([
    ["line1\nline2", "line1 line2"],
    ["(a \\", "(a \\"],
    ["  x\t\u2003y ", "x y"],
  ])("draws the title %j on one line", (title, line) => {
    expect(linesOf({ title, body: "b" })).toEqual([line, "b"]);
  });

  test.each(["", "   ", "\u200b", "\n"])("draws no title for %j", (title) => {
    expect(linesOf({ title, body: "b" })).toEqual(["b"]);
  });

  test("keeps indentation, runs of blanks and characters that mean something to PDF", () => {
    const body = "def f():\n    if x:\n        return  1\nA    B\n((( \\ ) \\( end\\";
    expect(linesOf({ body })).toEqual(body.split("\n"));
  });

  test("counts what the fonts cannot draw and still draws the rest", () => {
    const { output } = callHandler(createPdf, { body: "ok 😀 → 日本語 Łódź e\u0301" });
    expect(output).toMatchObject({ created: true, pages: 1 });
    expect(output.replaced_characters).toBeGreaterThan(0);
    expect(linesOf({ body: "ok 😀 é" })).toEqual(["ok ? \xe9"]);
  });

  test.each([
    [{ body: "b", filename: "Minutes.pdf", title: "T" }, "Minutes.pdf"],
    [{ body: "b", title: "Q3/Q4 \\ results" }, "Q3-Q4-results.pdf"],
    [{ body: "b", filename: "a/b.exe", title: "T" }, "b.exe.pdf"],
    [{ body: "b", filename: "😀", title: "T" }, "document.pdf"],
    [{ body: "b", filename: "x".repeat(200_000) }, `${"x".repeat(76)}.pdf`],
  ])("names the file after %j", (given, name) => {
    expect(callHandler(createPdf, given).name).toBe(name);
  });

  test("refuses null, and names what was null", () => {
    expect(refusalsOf(createPdf, { body: "x", title: null, filename: null })).toEqual([
      { path: "/title", message: expect.stringContaining("null") },
      { path: "/filename", message: expect.stringContaining("null") },
    ]);
  });

  test("names every unknown argument, sorted", () => {
    const given = { body: "x", fliename: "a.pdf", Title: "t", constructor: 1 };
    expect(refusalsOf(createPdf, given).map(({ path }) => path)).toEqual(["/Title", "/constructor", "/fliename"]);
  });

  test.each([[{}], [{ body: 5 }], [{ body: ["a"] }], [{ body: "x", title: 5 }]])("refuses %j", (given) => {
    expect(refusalsOf(createPdf, given)).toHaveLength(1);
  });
});
