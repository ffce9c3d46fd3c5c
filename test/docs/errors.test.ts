import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { toProblem } from "../../functions/aws/http/response.ts";
import { FAULTS, Fault } from "../../functions/contract/fault.ts";

const ROW = /^\| `([A-Z_]+)` \| (\d{3}) \| (caller|operator|us) \| (.+?) \| (.+?) \|$/gm;
const page = readFileSync("docs/errors.md", "utf8");
const rows = [...page.matchAll(ROW)].map(([, code, status, remedy, what, todo]) => ({
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

test("the problem document shown is the one that is sent", () => {
  const shown = JSON.parse(/```json\n([\s\S]*?)```/.exec(page)?.[1] ?? "");
  const fault = new Fault(shown.code, shown.detail, { violations: shown.errors });
  expect(JSON.parse(toProblem(fault, shown.request_id).body ?? "")).toEqual(shown);
});
