/** The programs that people and other tests read PDF files with must agree with the writer: poppler and qpdf. */
import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { renderPdf } from "../../../../functions/handlers/pdf/pdf-document.ts";
import { decodeWinAnsi, encodeWinAnsi } from "../../../../functions/handlers/pdf/win-ansi.ts";
import { HOSTILE_TEXTS, WINDOWS_1252 } from "./hostile-texts.ts";
import { readPages } from "./read-pdf.ts";

const run = promisify(execFile);
const isInstalled = (program: string, flag: string) => spawnSync(program, [flag]).error === undefined;
const poppler = isInstalled("pdftotext", "-v") && isInstalled("pdfinfo", "-v");
const qpdf = isInstalled("qpdf", "--version");
const CONCURRENCY = 4;
const HOSTILE_COUNT = Object.keys(HOSTILE_TEXTS).length + 1;
const MODES = [[], ["-layout"], ["-raw"]];

type Document = { readonly name: string; readonly title: string; readonly body: string };

const writable = WINDOWS_1252.filter((character) => character !== " ");
const word = fc.string({ unit: fc.constantFrom(...writable), minLength: 1, maxLength: 14 });
const line = fc.array(word, { maxLength: 20 }).map((words) => words.join(" "));
const prose = fc.array(line, { minLength: 1, maxLength: 60 }).map((lines) => lines.join("\n"));
const layout = fc.string({
  unit: fc.constantFrom("a", "W", "-", " ", " ", "\t", "\n", "\u00a0", "é", "(", "\\"),
  maxLength: 600,
});
const anything = fc.string({ unit: "binary", maxLength: 300 });

const sample = (arbitrary: fc.Arbitrary<string>, count: number, name: string): Document[] =>
  fc.sample(arbitrary, { numRuns: count, seed: 1 }).map((body, index) => ({
    name: `${name} ${index}`,
    title: fc.sample(arbitrary, { numRuns: 1, seed: index })[0]?.slice(0, 160) ?? "",
    body,
  }));

const DOCUMENTS: readonly Document[] = [
  { name: "the whole repertoire", title: writable.join(""), body: writable.join(" ") },
  ...Object.entries(HOSTILE_TEXTS).map(([name, body]) => ({ name, title: body.slice(0, 160), body })),
  ...sample(prose, 100, "prose"),
  ...sample(layout, 90, "layout"),
  ...sample(anything, 60, "anything"),
];

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "pdf-peers-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

type Check = (file: string, document: Document, pages: number) => Promise<void>;

async function forEach(documents: readonly Document[], check: Check): Promise<void> {
  const queue = [...documents.entries()];
  const work = async () => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const [index, document] = next;
      const { bytes, pages } = renderPdf({ title: document.title, blocks: [{ kind: "text", text: document.body }] });
      const file = path.join(folder, `${index}.pdf`);
      await writeFile(file, bytes);
      await check(file, document, pages);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

async function extract(file: string, mode: readonly string[]): Promise<string> {
  const { stdout } = await run("pdftotext", ["-enc", "UTF-8", ...mode, file, "-"]);
  return stdout;
}

async function extractBody(body: string, mode: readonly string[] = []): Promise<string> {
  const file = path.join(folder, "body.pdf");
  await writeFile(file, renderPdf({ title: "", blocks: [{ kind: "text", text: body }] }).bytes);
  return extract(file, mode);
}

async function drawnIn(file: string): Promise<string> {
  const pages = readPages(await readFile(file));
  return pages.flatMap((page) => page.runs.map((run) => `${decodeWinAnsi(run.text)}\n`)).join("");
}

const toLines = (text: string) => text.split(/[ \u00a0]*[\n\f]+/).filter((each) => each.trim() !== "");

/** What must come back: all but the blanks, which a reader may set as it likes where a line ends. */
const toInk = (text: string) => text.replace(/[ \n\f\t\u00a0]+/g, "");
const toWritten = (text: string) => decodeWinAnsi(encodeWinAnsi(text).bytes);

describe.skipIf(!poppler)("pdftotext and pdfinfo", () => {
  test("give back hundreds of texts character by character and line by line, blanks and page ends included", async () => {
    await forEach(DOCUMENTS, async (file, { name, title, body }, pages) => {
      const extracted = await extract(file, []);
      expect(toInk(extracted), name).toBe(toInk(toWritten(title) + toWritten(body)));
      expect(toLines(extracted), name).toEqual(toLines(await drawnIn(file)));
      expect(extracted.split("\f"), name).toHaveLength(pages + 1);
    });
  });

  test("count as many pages as the writer says", async () => {
    const fewer = DOCUMENTS.filter((_, index) => index < HOSTILE_COUNT || index % 10 === 0);
    await forEach(fewer, async (file, { name }, pages) => {
      const { stdout } = await run("pdfinfo", [file]);
      expect(Number(/^Pages:\s+(\d+)$/m.exec(stdout)?.[1]), name).toBe(pages);
    });
  });

  test.each(MODES.map((mode) => [mode.join("") || "no option", mode] as const))(
    "give back each of the 218 characters beside a letter, with %s",
    async (_, mode) => {
      const lines = WINDOWS_1252.map((character) => `a${character}b`);
      expect((await extractBody(lines.join("\n"), mode)).split(/\s*[\n\f]+/).filter((found) => found !== "")).toEqual(
        lines,
      );
    },
  );

  test.each(MODES.map((mode) => [mode.join("") || "no option", mode] as const))(
    "give back indentation, gaps, single letters and hyphens at a line's end, with %s",
    async (_, mode) => {
      const lines = [
        "def f():",
        "    if x:",
        "        return  1",
        "A    B    C",
        "AAAAAAAA    B    C",
        "well-",
        "known",
        "---",
        "a b c",
        "end",
      ];
      const found = (await extractBody(lines.join("\n"), mode)).split(/[\n\f]+/).map((each) => each.trimEnd());
      expect(found.filter((each) => each !== "")).toEqual(lines);
    },
  );

  test("give back all 43 lines of a page and the rest from the next", async () => {
    const lines = Array.from({ length: 100 }, (_, index) => `line ${index + 1}`);
    const pages = (await extractBody(lines.join("\n"))).split("\f").map((page) => page.trim().split("\n"));
    expect(pages.slice(0, 3)).toEqual([lines.slice(0, 43), lines.slice(43, 86), lines.slice(86)]);
  });

  test.each(["It’s €5 — “quoted” … • ™ – Œ Š ž", "Price “list” — €5", "((( \\ ) \\( end\\", "(a \\"])(
    "give back %j, as text and as title",
    async (text) => {
      const file = path.join(folder, "both.pdf");
      await writeFile(file, renderPdf({ title: text, blocks: [{ kind: "text", text: `before\n${text}` }] }).bytes);
      expect((await extract(file, [])).trim().split(/\n+/)).toEqual([text, "before", text]);
    },
  );

  test("read an item's marker before its text, and a heading before what it heads", async () => {
    const file = path.join(folder, "blocks.pdf");
    const { bytes } = renderPdf({
      title: "Title",
      blocks: [
        { kind: "heading", text: "Heading" },
        { kind: "item", text: "one", marker: "•", depth: 0 },
        { kind: "item", text: "two", marker: "–", depth: 1 },
        { kind: "item", text: "ten", marker: "10.", depth: 0 },
        { kind: "text", text: "after" },
      ],
    });
    await writeFile(file, bytes);
    const found = (await extract(file, [])).trim().split(/\n+/);
    expect(found).toEqual(["Title", "Heading", "• one", "– two", "10. ten", "after"]);
  });
});

describe.skipIf(!qpdf)("qpdf --check", () => {
  test("finds no fault in hundreds of documents", async () => {
    await forEach(DOCUMENTS, async (file, { name }) => {
      const { stdout } = await run("qpdf", ["--check", file]);
      expect(stdout, name).toContain("No syntax or stream encoding errors found");
    });
  });
});
