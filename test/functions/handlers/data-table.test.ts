import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dataTable, MAX_COLUMNS, MAX_ROWS } from "../../../functions/handlers/data-table.ts";
import { callHandler, refusalsOf } from "./call-handler.ts";
import { readCsv } from "./read-csv.ts";

type Given = Readonly<Record<string, unknown>>;

const BOM = "\ufeff";
const tableOf = (given: Given, delimiter = ",") => {
  const { text } = callHandler(dataTable, given);
  if (!text.startsWith(BOM)) throw new Error("no byte-order mark");
  return readCsv(text.slice(BOM.length), delimiter);
};
const cellOf = (cell: unknown) => tableOf({ columns: ["a"], rows: [[cell]] })[1]?.[0];
const pathsOf = (given: Given) => refusalsOf(dataTable, given).map(({ path }) => path);

/** Would be run as a formula, or passed to another program, by one of the usual spreadsheets. */
const FORMULAS = [
  "=1+1",
  "+1+1",
  "-1+1",
  "@SUM(A1)",
  "=cmd|' /C calc'!A0",
  "|calc",
  "%0A=1",
  " =1+1",
  "\u00a0=1+1",
  "\u3000=1+1",
  "\t=1+1",
  "\r=1+1",
  "\n=1+1",
  "\tx",
  "\rx",
  "\nx",
  "＝1+1",
  "＋1+1",
  "－1+1",
  "＠SUM(A1)",
  "\u200b=1+1",
  "\u200d=1+1",
  "\ufe0f=1+1",
  "\ufeff=1+1",
  "\0=1+1",
  '=HYPERLINK("http://x.test","y")',
  "=1+1\nsecond line",
  '=1,"2";3',
  "-",
  "--5",
  "-5-5",
  "+49 (0) 30",
  "-1e5",
];
const HARMLESS = [
  "-5",
  "+5",
  "-5.25",
  "+0,5",
  "-123456789012345",
  "a=b",
  "1-2",
  "a@b.test",
  "'=1",
  "",
  " x",
  "日本",
  "a\nb=c",
];

describe("formulas", () => {
  test.each(FORMULAS)("%j is made harmless, as a cell and as a header", (text) => {
    const { output } = callHandler(dataTable, { columns: [text, "b"], rows: [[text, 1]] });
    expect(output.guarded_cells).toBe(2);
    const [header = [], row = []] = tableOf({ columns: [text, "b"], rows: [[text, 1]] });
    expect(row[0]).toMatch(/^'/);
    expect(header[0]).toBe(row[0]);
  });

  test.each(HARMLESS)("%j stays as it is", (text) => {
    expect(cellOf(text)).toBe(text);
    expect(callHandler(dataTable, { columns: ["a"], rows: [[text]] }).output).not.toHaveProperty("guarded_cells");
  });

  test("negative numbers stay numbers", () => {
    expect(tableOf({ columns: ["a", "b"], rows: [[-5, -0.25]] })[1]).toEqual(["-5", "-0.25"]);
  });
});

describe("a table", () => {
  test("is UTF-8 with a byte-order mark and CRLF at every end", () => {
    const { text, name, mediaType, output } = callHandler(dataTable, {
      columns: ["Region", "Units", "Changed"],
      rows: [
        ["Nord é", 1200, "2026-11-28"],
        ["South", 950, null],
      ],
      filename: "units",
    });
    expect(text).toBe(`${BOM}Region,Units,Changed\r\nNord é,1200,2026-11-28\r\nSouth,950,\r\n`);
    expect({ name, mediaType, output }).toEqual({
      name: "units.csv",
      mediaType: "text/csv",
      output: { created: true, rows: 2, columns: 3 },
    });
  });

  test.each([
    [true, "true"],
    [false, "false"],
    [0, "0"],
    [-0, "0"],
    [1e21, "1e+21"],
    [0.1, "0.1"],
    [null, ""],
    ["null", "null"],
    ['say "hi", twice', 'say "hi", twice'],
    ["a;b", "a;b"],
    ["a\r\nb\rc\u2028d", "a\nb\nc\nd"],
    ["a\u200bb\u202ec\0d", "abcd"],
    ['"', '"'],
  ])("gives back the cell %j", (cell, text) => {
    expect(cellOf(cell)).toBe(text);
  });

  test("may be cut at semicolons", () => {
    const { text } = callHandler(dataTable, { columns: ["a", "b"], rows: [["1,5", "x;y"]], delimiter: ";" });
    expect(text).toBe(`${BOM}a;b\r\n1,5;"x;y"\r\n`);
  });

  test("keeps an empty row of one column apart from the end of the file", () => {
    expect(tableOf({ columns: ["a"], rows: [[null], ["x"], [""]] })).toEqual([["a"], [""], ["x"], [""]]);
    expect(callHandler(dataTable, { columns: ["a"], rows: [[null]] }).text).toBe(`${BOM}a\r\n""\r\n`);
  });

  test("may have no row, but not no column", () => {
    expect(tableOf({ columns: ["a"], rows: [] })).toEqual([["a"]]);
    expect(pathsOf({ columns: [], rows: [] })).toEqual(["/columns"]);
  });

  test("refuses a row that has not one cell a column", () => {
    expect(pathsOf({ columns: ["a", "b"], rows: [[1, 2], [1]] })).toEqual(["/rows/1"]);
    expect(pathsOf({ columns: ["a", "b"], rows: [[1, 2, 3]] })).toEqual(["/rows/0"]);
  });

  test("takes its largest size and not one more", () => {
    const columns = (count: number) => Array.from({ length: count }, () => "c");
    const rows = (count: number) => Array.from({ length: count }, () => [1]);
    expect(callHandler(dataTable, { columns: columns(MAX_COLUMNS), rows: [] }).output.columns).toBe(MAX_COLUMNS);
    expect(pathsOf({ columns: columns(MAX_COLUMNS + 1), rows: [] })).toEqual(["/columns"]);
    expect(callHandler(dataTable, { columns: ["a"], rows: rows(MAX_ROWS) }).output.rows).toBe(MAX_ROWS);
    expect(pathsOf({ columns: ["a"], rows: rows(MAX_ROWS + 1) })).toEqual(["/rows"]);
  });

  test.each([
    [{ columns: ["a"], rows: [[{}]] }, ["/rows/0/0"]],
    [{ columns: ["a"], rows: [[[1]]] }, ["/rows/0/0"]],
    [{ columns: [null], rows: [] }, ["/columns/0"]],
    [{ columns: ["a"], rows: [], delimiter: "\t" }, ["/delimiter"]],
    [{ columns: ["a"], rows: [], delimiter: null }, ["/delimiter"]],
    [{ columns: ["a"], rows: [], sheet: "x" }, ["/sheet"]],
  ])("refuses %j", (given, paths) => {
    expect(pathsOf(given)).toEqual(paths);
  });

  test("reads back as it was written, whatever its cells are, but for the apostrophes that were counted", () => {
    const text = fc.string({ unit: fc.constantFrom(..."=+-@|%\t\n '\",;ab1é＝", " ", "\u00a0"), maxLength: 8 });
    const cell = fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null));
    const table = fc.integer({ min: 1, max: 4 }).chain((width) =>
      fc.record({
        columns: fc.array(text, { minLength: width, maxLength: width }),
        rows: fc.array(fc.array(cell, { minLength: width, maxLength: width }), { maxLength: 5 }),
        delimiter: fc.constantFrom(",", ";"),
      }),
    );
    fc.assert(
      fc.property(table, (given) => {
        const mark = given.delimiter === ";" ? "," : ".";
        const shown = (each: unknown) =>
          typeof each === "number" ? String(each).replace(".", mark) : String(each ?? "");
        const wanted = [given.columns, ...given.rows].flat().map(shown);
        const read = tableOf(given, given.delimiter).flat();
        const guarded = read.filter((field, index) => field !== wanted[index]);
        expect(read.map((field, index) => (field === `'${wanted[index]}` ? wanted[index] : field))).toEqual(wanted);
        expect(callHandler(dataTable, given).output.guarded_cells ?? 0).toBe(guarded.length);
        const texts = [given.columns, ...given.rows].flat().map((each) => typeof each === "string");
        const run = read.filter((field, index) => texts[index] && /^\s*[=+\-@＝|%]|^[\t\n]/.test(field));
        expect(run.filter((field) => !/^[+-]\d+$/.test(field))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });
});

test("numbers have a decimal comma where cells are set apart by semicolons", () => {
  const given = { columns: ["a", "b", "c"], rows: [[1.5, -0.25, "1.5"]] };
  expect(tableOf({ ...given, delimiter: ";" }, ";")[1]).toEqual(["1,5", "-0,25", "1.5"]);
  expect(tableOf(given)[1]).toEqual(["1.5", "-0.25", "1.5"]);
});
