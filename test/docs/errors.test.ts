import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { FAULTS } from "../../functions/contract/fault.ts";

const ROW = /^\| `([A-Z_]+)` \| (\d{3}) \| (caller|operator|us) \| (.+?) \| (.+?) \|$/gm;
const rows = [...readFileSync("docs/errors.md", "utf8").matchAll(ROW)].map(([, code, status, remedy, what, todo]) => ({
  code,
  status: Number(status),
  remedy,
  what,
  todo,
}));

test("the documentation lists exactly the fault table, in its order, with status and remedy", () => {
  const table = Object.entries(FAULTS).map(([code, { remedy, status }]) => ({ code, status, remedy }));
  expect(rows.map(({ code, status, remedy }) => ({ code, status, remedy }))).toEqual(table);
});

test("every fault is explained by a sentence and a remedy", () => {
  for (const { what, todo } of rows) {
    expect(what).toMatch(/^[A-Z`].{10,}\.$/);
    expect(todo).toMatch(/^[A-Z`].{10,}\.$/);
  }
});
