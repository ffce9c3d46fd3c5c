import { stringify } from "csv-stringify/sync";
import * as z from "zod";
import type { Handler } from "../contract/ports.ts";
import { withoutInvisibles, withUnixLineBreaks } from "../contract/text.ts";
import { readArguments, refuseArgument } from "./arguments.ts";
import { toEnvelope } from "./envelope.ts";

/**
 * Rows -> CSV that a spreadsheet opens as it is: UTF-8 with a byte-order mark (without it Excel reads the local code
 * page), CRLF, fields quoted as RFC 4180 says, and no text that a spreadsheet would run as a formula.
 */

export const MAX_COLUMNS = 200;
export const MAX_ROWS = 5_000;

const Cell = z.union([z.string(), z.number(), z.boolean(), z.null()]);
type Cell = z.infer<typeof Cell>;

const Delimiter = z.enum([",", ";"]);
type Delimiter = z.infer<typeof Delimiter>;

const DataTableArguments = z.strictObject({
  columns: z.array(z.string()).min(1).max(MAX_COLUMNS),
  rows: z.array(z.array(Cell)).max(MAX_ROWS),
  delimiter: Delimiter.default(","),
  filename: z.string().optional(),
});

/**
 * Left to itself the library quotes a field for CRLF but not for a lone line feed, with which a cell could begin a row
 * of its own. `quoted_empty` for a table of one column: an empty line is passed over by readers.
 */
const CSV = { bom: true, record_delimiter: "windows", quoted_match: /[\r\n]/ } as const;

/** Answers `{created, rows, columns, guarded_cells?, artifact}`; `guarded_cells` counts cells made harmless. */
export const dataTable: Handler = ({ arguments: given }) => {
  const { columns, rows, delimiter, filename } = readArguments(DataTableArguments, given);
  rows.forEach((row, index) => {
    if (row.length !== columns.length) {
      refuseArgument(`/rows/${index}`, `has ${row.length} cells, ${columns.length} wanted, one a column`);
    }
  });
  const table = [columns, ...rows].map((row) => row.map((cell) => toField(cell, delimiter)));
  const guarded = table.flat().filter(({ guarded }) => guarded).length;
  const csv = stringify(
    table.map((row) => row.map(({ text }) => text)),
    { ...CSV, delimiter, quoted_empty: columns.length === 1 },
  );
  return {
    created: true,
    rows: rows.length,
    columns: columns.length,
    ...(guarded > 0 ? { guarded_cells: guarded } : {}),
    artifact: toEnvelope({ content: csv, mediaType: "text/csv", filename, fallback: "table" }),
  };
};

/** Who sets cells apart by semicolons has the comma for a decimal mark: `1.5` would be read as the first of May. */
function toNumberText(value: number, delimiter: Delimiter): string {
  return delimiter === ";" ? String(value).replace(".", ",") : String(value);
}

/** Characters that make a spreadsheet read a cell as a formula, also in full width, and after white space. */
const FORMULA = /^[\s\p{Default_Ignorable_Code_Point}]*[=+\-@\uff1d\uff0b\uff0d\uff20|%]|^[\t\n]/u;
/** A plain negative or positive number is data, not a formula. */
const PLAIN_NUMBER = /^[+-]?\d{1,15}(?:[.,]\d{1,15})?$/;

function toField(cell: Cell, delimiter: Delimiter): { readonly text: string; readonly guarded: boolean } {
  if (cell === null) return { text: "", guarded: false };
  if (typeof cell === "number") return { text: toNumberText(cell, delimiter), guarded: false };
  if (typeof cell !== "string") return { text: String(cell), guarded: false };
  const text = withoutInvisibles(withUnixLineBreaks(cell));
  const guarded = FORMULA.test(text) && !PLAIN_NUMBER.test(text);
  return { text: guarded ? `'${text}` : text, guarded };
}
