import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createArgumentChecker } from "../../../functions/broker/argument-schema.ts";
import { DEFAULT_LIMITS } from "../../../functions/contract/limits.ts";
import { parseToolRef, type ToolSpec } from "../../../functions/contract/tool.ts";
import { HANDLERS } from "../../../functions/handlers/table.ts";
import { NOW } from "../handlers/call-handler.ts";
import { SHIPPED_SKILLS } from "../repository/skills-on-disk.ts";
import { shippedCatalog } from "./catalogs.ts";
import "../../kit/to-fail.ts";

const CATALOG = shippedCatalog(["local"]);
const TOOLS = [...CATALOG.tools.values()];
const SKILLS = CATALOG.skills.list();

/** As many bytes as a call may be given, in the shape that makes the most mistakes. */
function floodOf({ inputSchema }: ToolSpec): readonly Readonly<Record<string, unknown>>[] {
  const room = DEFAULT_LIMITS.max_argument_bytes - 100;
  const properties = Object.keys(Object(inputSchema.properties));
  const unknown = Object.fromEntries(
    Array.from({ length: Math.floor(room / 12) }, (_, index) => [`k${100_000 + index}`, 0]),
  );
  const fillings = [Array(Math.floor(room / 2)).fill(0), Array(Math.floor(room / 3)).fill({})];
  return [unknown, ...properties.flatMap((name) => fillings.map((filling) => ({ [name]: filling })))];
}

describe.each(SKILLS.map((skill) => [skill.name, skill] as const))("%s", (name, skill) => {
  test("shows arguments in its instructions that its tool accepts", async () => {
    const text = readFileSync(join(SHIPPED_SKILLS, name, "SKILL.md"), "utf8");
    const examples = [...text.matchAll(/```json\n(.*?)```/gs)].map(([, json = ""]) => JSON.parse(json));
    expect(examples).toHaveLength(skill.callable === undefined ? 0 : 1);
    for (const given of examples) {
      const tool = TOOLS.find(({ spec }) => spec.ref === skill.callable?.ref) ?? expect.unreachable();
      expect(await createArgumentChecker()(tool.spec, given)).toEqual({ ok: true, value: null });
      const { handler, skill: bound } = "handler" in tool.binding ? tool.binding : expect.unreachable();
      const answer = HANDLERS.get(handler)?.({ arguments: given, skill: bound, now: NOW });
      expect(answer).toMatchObject({ created: true });
    }
  });

  test("names only tools and skills that are there, and calls its own by its ref", () => {
    const { uses, problems } = CATALOG.skills.resolve(name);
    expect(problems).toEqual([]);
    for (const { ref } of uses) expect(CATALOG.tools.has(parseToolRef(ref) ?? expect.unreachable())).toBe(true);
    if (skill.callable !== undefined) expect(skill.instructions).toContain(skill.callable.ref);
  });
});

describe.each(TOOLS.map(({ spec }) => [spec.ref, spec] as const))("%s", (_, spec) => {
  test("judges the largest and most mistaken arguments quickly", async () => {
    const check = createArgumentChecker();
    for (const given of floodOf(spec)) {
      expect(JSON.stringify(given).length).toBeLessThanOrEqual(DEFAULT_LIMITS.max_argument_bytes);
      const started = performance.now();
      const checked = await check(spec, given);
      expect(performance.now() - started).toBeLessThan(DEFAULT_LIMITS.call_timeout_ms);
      if (!checked.ok) expect(checked).toFail("TOOL_INPUT_INVALID");
    }
  });

  test("closes its arguments, and says of each what it is or which of several", () => {
    expect(spec.inputSchema).toMatchObject({ type: "object", additionalProperties: false });
    for (const property of Object.values(Object(spec.inputSchema.properties))) {
      expect(Object.keys(Object(property)).some((key) => ["type", "enum", "$ref"].includes(key))).toBe(true);
    }
  });
});
