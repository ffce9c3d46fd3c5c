import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { loadPolicy } from "../../../functions/broker/operator-policy.ts";
import type { Catalog } from "../../../functions/catalog/catalog.ts";
import { SkillRefreshResult } from "../../../functions/catalog/refresh-result.ts";
import { SkillRegistry } from "../../../functions/catalog/skill-registry.ts";
import { fencedDescription, toModelTools, toToolGroups } from "../../../functions/catalog/tool-views.ts";
import { MODEL_FORMATS, ToolGroups } from "../../../functions/contract/catalog.ts";
import { ToolRef, type ToolSpec } from "../../../functions/contract/tool.ts";
import { toolOf } from "../broker/tools.ts";
import { callable, catalogOf, shippedCatalog } from "./catalogs.ts";

const SHIPPED_REFS = ["calendar_event@1", "data_table@1", "incident_report@1", "meeting_minutes@1", "status_update@1"];

/** All approved. */
function catalogOfTools(specs: Readonly<Record<string, Partial<ToolSpec>>>): Catalog {
  const tools = Object.entries(specs).map(([ref, changes]) => toolOf(ref, changes));
  return {
    tools: new Map(tools.map((tool) => [tool.spec.ref, tool])),
    policy: loadPolicy(Object.keys(specs), []),
    skills: new SkillRegistry({ skills: [], log: () => undefined }),
    repositories: [],
    generation: 0,
    record: undefined,
    servers: new Map(),
    lookup: () => ({ state: "absent" }),
    served: new Map(),
    lastRefresh: new SkillRefreshResult({}),
  };
}

describe("the groups", () => {
  test("hold what is approved, by where it comes from, sorted", () => {
    const groups = ToolGroups.parse(toToolGroups(shippedCatalog(["status_update@1", "local", "data_table@1"])));
    expect(groups.bundled.map(({ ref }) => ref)).toEqual(["create_pdf@1", "make_plan@1"]);
    expect(groups.repository.map(({ ref }) => ref)).toEqual(["data_table@1", "status_update@1"]);
    expect(groups.mcp).toEqual([]);
  });

  test("hold nothing that nobody approved", () => {
    expect(toToolGroups(shippedCatalog([]))).toEqual({
      bundled: [],
      repository: [],
      mcp: [],
      not_approved: [],
      changed: [],
    });
  });
});

describe("definitions for models", () => {
  test.each(MODEL_FORMATS)("in the format %s lead from every legal name back to the ref", (format) => {
    const { tools, refs } = toModelTools(shippedCatalog(["local", ...SHIPPED_REFS]), format);
    const names = tools.map((tool) => String((format === "openai" ? Object(tool.function) : tool).name));
    expect(Object.keys(refs)).toEqual(names);
    expect(Object.values(refs).sort()).toEqual([...SHIPPED_REFS, "create_pdf@1", "make_plan@1"].sort());
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(refs.create_pdf_v1).toBe("create_pdf@1");
  });

  test("have the fields that each provider takes, and no other", () => {
    const catalog = catalogOfTools({ "a@1": { outputSchema: { type: "object" } } });
    const of = (format: (typeof MODEL_FORMATS)[number]) => toModelTools(catalog, format).tools[0];
    const schema = { type: "object" };
    expect(of("mcp")).toEqual({ name: "a_v1", description: "Does a.", inputSchema: schema, outputSchema: schema });
    expect(of("anthropic")).toEqual({ name: "a_v1", description: "Does a.", input_schema: schema });
    expect(of("openai")).toEqual({
      type: "function",
      function: { name: "a_v1", description: "Does a.", parameters: schema },
    });
  });

  test("have names that are legal, unique and lead back, whatever the refs", () => {
    const part = fc.string({ unit: fc.constantFrom(..."a_.-V1"), minLength: 1, maxLength: 90 });
    const version = fc.string({ unit: fc.constantFrom(..."a.-1"), maxLength: 30 }).map((text) => `1${text}`);
    const local = fc
      .tuple(part, version)
      .map(([id, each]) => `a${id.replace(/[.-]/g, "_").toLowerCase().slice(0, 63)}@${each}`);
    const lent = fc.tuple(part, part).map(([server, tool]) => `${server}/${tool}@0123456789ab`);
    fc.assert(
      fc.property(fc.uniqueArray(fc.oneof(local, lent), { maxLength: 8 }), (refs) => {
        const model = toModelTools(
          catalogOfTools(Object.fromEntries(refs.map((ref) => [ToolRef.parse(ref), {}]))),
          "mcp",
        );
        const names = model.tools.map(({ name }) => String(name));
        expect(new Set(names).size).toBe(refs.length);
        for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        expect(names.map((name) => model.refs[name]).sort()).toEqual([...refs].sort());
      }),
    );
  });

  test("tell two refs apart that would have one name", () => {
    const { refs } = toModelTools(catalogOfTools({ "a_b@0123456789ab": {}, "a/b@0123456789ab": {}, "c@1": {} }), "mcp");
    expect(Object.values(refs).sort()).toEqual(["a/b@0123456789ab", "a_b@0123456789ab", "c@1"]);
    expect(refs.c_v1).toBe("c@1");
    expect(refs.a_b_v0123456789ab).toBeUndefined();
  });

  test("are the same on every call", () => {
    const catalog = shippedCatalog(["local", ...SHIPPED_REFS]);
    expect(toModelTools(catalog, "mcp")).toEqual(toModelTools(catalog, "mcp"));
  });
});

describe("a third party's description", () => {
  const fenced = (description: string) => fencedDescription(toolOf("a@1", { origin: "acme", description }).spec);

  test("stands in a fence with its origin's name, ours stands alone", () => {
    const lines = fenced("Does things.").split("\n");
    expect(lines[0]).toContain('"acme"');
    expect(lines.slice(1)).toEqual([lines[3], "Does things.", lines[3]]);
    expect(lines[3]).toMatch(/^=====/);
    expect(fencedDescription(toolOf("a@1").spec)).toBe("Does a.");
  });

  test("is fenced in all three formats", () => {
    const catalog = catalogOf(callable("acme/a", "a"), ["a@1"]);
    for (const format of MODEL_FORMATS) {
      expect(JSON.stringify(toModelTools(catalog, format).tools)).toContain("a third party");
    }
  });

  test("cannot close its own fence", () => {
    const piece = fc.constantFrom(
      "=",
      "==",
      "=====",
      "\n",
      "\r",
      "\u200b",
      "\u2060",
      "＝",
      "═",
      " ",
      "x",
      fenced("x").split("\n")[1] ?? "",
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join("")),
        (description) => {
          const lines = fenced(description).split("\n");
          const fence = lines[1] ?? "";
          expect(lines.filter((line) => line === fence)).toHaveLength(2);
          expect(lines.at(-1)).toBe(fence);
          expect(lines.slice(2, -1).join("\n")).not.toMatch(/[=＝═]{3}|\u200b/);
        },
      ),
    );
  });
});

test.each(MODEL_FORMATS)("what a third party's schema says to people is marked for a model too (%s)", (format) => {
  const inputSchema = {
    type: "object",
    description: "obey",
    properties: { title: { type: "string", title: "obey", enum: ["obey"], default: { description: "data" } } },
  };
  const [tool] = toModelTools(catalogOfTools({ "x@1": { origin: "acme", inputSchema } }), format).tools;
  const text = JSON.stringify(tool);
  expect(text.match(/"obey"/g)).toHaveLength(1);
  expect(text.match(/\\"acme\\" says: /g)).toHaveLength(2);
  expect(text).toContain('{"description":"data"}');
});
