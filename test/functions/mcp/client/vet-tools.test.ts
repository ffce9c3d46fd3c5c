import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_SCHEMA_BYTES } from "../../../../functions/contract/tool-schema.ts";
import { vetTools } from "../../../../functions/mcp/client/vet-tools.ts";

const OBJECT = { type: "object", properties: {} };
const tool = (name: unknown, changes: object = {}) => ({ name, description: "d", inputSchema: OBJECT, ...changes });
const namesOf = (tools: readonly { readonly name: string }[]) => tools.map(({ name }) => name);

describe("a list of tools", () => {
  test("loses the broken ones, each with its reason, and keeps the others", () => {
    const vetted = vetTools([
      tool("good", { inputSchema: { type: "object" } }),
      tool("bad", { inputSchema: { type: "string" } }),
      tool("empty", { inputSchema: { $schema: "http://json-schema.org/draft-07/schema#" } }),
      tool("nul", { inputSchema: null }),
    ]);
    expect(namesOf(vetted.available)).toEqual(["good"]);
    expect(vetted.quarantined).toEqual([
      { name: "bad", reason: '/inputSchema/type: "object" wanted, got "string"' },
      { name: "empty", reason: '/inputSchema/type: "object" wanted, got nothing' },
      { name: "nul", reason: expect.stringContaining("/inputSchema: expected object, received null") },
    ]);
  });

  test.each([
    ["an unknown dialect", tool("x", { inputSchema: { ...OBJECT, $schema: "http://example.test/unknown" } })],
    ["a schema past the limit", tool("x", { inputSchema: { ...OBJECT, title: "x".repeat(MAX_SCHEMA_BYTES) } })],
    ["a broken output schema", tool("x", { outputSchema: { type: "array" } })],
    ["a name with a slash", tool("a/b")],
    ["a name of 129 characters", tool("x".repeat(129))],
    ["an empty name", tool("")],
    ["a name that is no text", tool(5)],
    ["no tool at all", null],
    ["a list in place of a tool", []],
    ["a text", "x"],
  ])("sets %s aside", (_, offered) => {
    const { available, quarantined } = vetTools([offered, tool("good")]);
    expect(namesOf(available)).toEqual(["good"]);
    expect(quarantined).toEqual([{ name: expect.any(String), reason: expect.stringMatching(/.+/) }]);
  });

  test("takes a name of 128 characters and a schema at the limit", () => {
    const padding = MAX_SCHEMA_BYTES - JSON.stringify({ ...OBJECT, title: "" }).length;
    const wide = tool("x".repeat(128), { inputSchema: { ...OBJECT, title: "t".repeat(padding) } });
    expect(vetTools([wide]).quarantined).toEqual([]);
  });

  test("has none of two tools of one name", () => {
    const { available, quarantined } = vetTools([tool("a"), tool("b"), tool("a", { description: "other" })]);
    expect(namesOf(available)).toEqual(["b"]);
    expect(namesOf(quarantined)).toEqual(["a", "a"]);
  });

  test("shows a hostile name as what it is", () => {
    expect(vetTools([tool("a\u202e\u0000b")]).quarantined[0]?.name).toBe("a\\u{202e}\\u{0000}b");
  });

  test("gives the same answer in any order, and accounts for every tool", () => {
    const offered = fc.array(
      fc.oneof(
        fc.constantFrom("a", "b", "c", "é").map((name) => tool(name)),
        fc.anything(),
      ),
    );
    fc.assert(
      fc.property(offered, (tools) => {
        const vetted = vetTools(tools);
        expect(vetted.available.length + vetted.quarantined.length).toBe(tools.length);
        const reversed = vetTools(tools.toReversed());
        expect(namesOf(reversed.available)).toEqual(namesOf(vetted.available));
        expect(namesOf(reversed.quarantined)).toEqual(namesOf(vetted.quarantined));
      }),
    );
  });
});
