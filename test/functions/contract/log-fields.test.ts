import { expect, test } from "vitest";
import { withFields } from "../../../functions/contract/log-fields.ts";

test("every line has the bound fields, and its own field wins", () => {
  const lines: unknown[] = [];
  const log = withFields((...line) => void lines.push(line), { request_id: "r1", job_id: "bound" });
  log("info", "job", { job_id: "own" });
  log("warn", "nothing of its own");
  expect(lines).toEqual([
    ["info", "job", { request_id: "r1", job_id: "own" }],
    ["warn", "nothing of its own", { request_id: "r1", job_id: "bound" }],
  ]);
});
