import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mcpRef } from "../../../../functions/contract/offered-tool.ts";
import { MAX_SCHEMA_BYTES } from "../../../../functions/contract/tool-schema.ts";
import { DEFAULT_DEFINITION_LIMITS, vetTools } from "../../../../functions/mcp/client/vet-tools.ts";

const OBJECT = { type: "object", properties: {} };
const tool = (name: unknown, changes: object = {}) => ({ name, description: "d", inputSchema: OBJECT, ...changes });
const namesOf = (tools: readonly { readonly name: string }[]) => tools.map(({ name }) => name);
const hiding = (secret: string) => (text: string) => text.replaceAll(secret, "[secret]");
const redact = hiding("hunter2");
const OPTIONS = { limits: DEFAULT_DEFINITION_LIMITS, redact, mirrorsArguments: true };
const vet = (offered: readonly unknown[], limits: Partial<typeof DEFAULT_DEFINITION_LIMITS> = {}) =>
  vetTools(offered, { ...OPTIONS, limits: { ...DEFAULT_DEFINITION_LIMITS, ...limits } });

/** So many objects inside one another. */
function nested(levels: number): unknown {
  let value: unknown = {};
  for (let level = 1; level < levels; level += 1) value = { a: value };
  return value;
}

describe("a list of tools", () => {
  test("loses the broken ones, each with its reason, and keeps the others", () => {
    const vetted = vet([
      tool("good", { inputSchema: { type: "object" } }),
      tool("bad", { inputSchema: { type: "string" } }),
      tool("empty", { inputSchema: { $schema: "http://json-schema.org/draft-07/schema#" } }),
      tool("nul", { inputSchema: null }),
    ]);
    expect(namesOf(vetted.tools)).toEqual(["good"]);
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
    ["a name of letters that are not ASCII", tool("läsa")],
    ["a name that is no text", tool(5)],
    ["no tool at all", null],
    ["a list in place of a tool", []],
    ["a text", "x"],
    ["half a character in a description", tool("x", { description: "cut \ud83d" })],
    ["half a character in a key", tool("x", { inputSchema: { type: "object", "\ud83d": 1 } })],
    [
      "a key that would change the prototype",
      JSON.parse('{"name":"x","inputSchema":{"type":"object","__proto__":{}}}'),
    ],
    ["a number that no double holds", JSON.parse('{"name":"x","inputSchema":{"type":"object","maximum":1e999}}')],
    ["a schema of a hundred thousand levels", tool("x", { inputSchema: nested(100_000) })],
  ])("sets %s aside", (_, offered) => {
    const { tools, quarantined } = vet([offered, tool("good")]);
    expect(namesOf(tools)).toEqual(["good"]);
    expect(quarantined).toEqual([{ name: expect.any(String), reason: expect.stringMatching(/^.{1,500}$/) }]);
  });

  test("takes a name of 128 characters and a schema at the limit", () => {
    const padding = MAX_SCHEMA_BYTES - JSON.stringify({ ...OBJECT, title: "" }).length;
    const wide = tool("x".repeat(128), { inputSchema: { ...OBJECT, title: "t".repeat(padding) } });
    expect(vet([wide], { maxBytes: 2 * MAX_SCHEMA_BYTES }).quarantined).toEqual([]);
  });

  test("takes a definition of the most bytes, and sets aside one of a byte more", () => {
    const definition = tool("a", { description: "é" });
    const maxBytes = Buffer.byteLength(JSON.stringify(definition));
    expect(namesOf(vet([definition], { maxBytes }).tools)).toEqual(["a"]);
    expect(vet([definition], { maxBytes: maxBytes - 1 }).quarantined).toEqual([
      { name: "a", reason: `the definition has ${maxBytes} bytes, at most ${maxBytes - 1} are allowed` },
    ]);
  });

  test("takes a definition of the greatest depth, and sets aside one of a level more", () => {
    // The tool itself is the first level, its schema the second.
    const definition = (levels: number) => tool("a", { inputSchema: { type: "object", a: nested(levels - 2) } });
    const limits = { maxDepth: 10 };
    expect(namesOf(vet([definition(10)], limits).tools)).toEqual(["a"]);
    expect(vet([definition(11)], limits).quarantined).toEqual([{ name: "a", reason: "nested deeper than 10 levels" }]);
  });

  test("has none of two tools of one name", () => {
    const { tools, quarantined } = vet([tool("a"), tool("b"), tool("a", { description: "other" })]);
    expect(namesOf(tools)).toEqual(["b"]);
    expect(namesOf(quarantined)).toEqual(["a", "a"]);
  });

  test("has none of two tools of one name of which one is broken by itself", () => {
    const { tools, quarantined } = vet([tool("a"), tool("a", { inputSchema: 5 })]);
    expect(tools).toEqual([]);
    expect(namesOf(quarantined)).toEqual(["a", "a"]);
  });

  test("shows a hostile name as what it is", () => {
    expect(vet([tool("a\u202e\u0000b")]).quarantined[0]?.name).toBe("a\\u{202e}\\u{0000}b");
  });

  test("shows nothing that was sent to the server in confidence", () => {
    const echoes = [
      tool("told", { description: "you sent hunter2" }),
      tool("hunter2 ", {}),
      tool("wrong", { inputSchema: { type: "hunter2" } }),
    ];
    const { tools, quarantined } = vet(echoes);
    expect(tools).toEqual([]);
    expect(quarantined).toHaveLength(3);
    expect(JSON.stringify(quarantined)).not.toContain("hunter2");
  });

  test.each([
    ["a description", 'pa"ss\\word-1234', { description: 'you sent pa"ss\\word-1234' }],
    ["a key", 'pa"ss\\word-1234', { inputSchema: { type: "object", properties: { 'pa"ss\\word-1234': {} } } }],
    ["several lines", "line one\nline two", { description: "line one\nline two" }],
    ["a number", "12345678", { inputSchema: { type: "object", properties: { a: { default: 12345678 } } } }],
  ])("shows nothing of it in %s, however JSON writes it", (_, secret, echo) => {
    const { tools, quarantined } = vetTools([tool("told", echo), tool("good")], { ...OPTIONS, redact: hiding(secret) });
    expect(namesOf(tools)).toEqual(["good"]);
    expect(quarantined).toEqual([{ name: "told", reason: "the definition holds a value that was sent to the server" }]);
  });

  test("loses a tool that asks for a header in a way that is not provided for, where arguments go into headers", () => {
    const asking = tool("a", {
      inputSchema: { type: "object", properties: { "a/b": { type: "number", "x-mcp-header": "B" } } },
    });
    expect(vetTools([asking, tool("good")], OPTIONS)).toMatchObject({
      tools: [{ name: "good" }],
      quarantined: [
        {
          name: "a",
          reason:
            "/inputSchema/properties/a~1b/x-mcp-header: only a string, an integer or a boolean can be sent in a header",
        },
      ],
    });
    expect(namesOf(vetTools([asking], { ...OPTIONS, mirrorsArguments: false }).tools)).toEqual(["a"]);
  });

  test("leaves out what was not offered: a definition without a description is not one with an empty description", () => {
    const [bare] = vet([{ name: "a", inputSchema: OBJECT }]).tools;
    expect(bare).toEqual({ name: "a", inputSchema: OBJECT });
    expect(Object.keys(bare ?? {})).toEqual(["name", "inputSchema"]);
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
        const vetted = vet(tools);
        expect(vetted.tools.length + vetted.quarantined.length).toBe(tools.length);
        const reversed = vet(tools.toReversed());
        expect(namesOf(reversed.tools)).toEqual(namesOf(vetted.tools));
        expect(namesOf(reversed.quarantined)).toEqual(namesOf(vetted.quarantined));
      }),
    );
  });
});

describe("tools of several servers", () => {
  // Joined by "__" the first two would be one name; sanitised, "a.b", "a_b" and "a/b" would be.
  const servers = [
    ["evil__foo", [tool("real")]],
    ["evil", [tool("foo__real"), tool("search"), tool("a.b"), tool("a_b"), tool("a/b")]],
    ["wiki", [tool("search")]],
  ] as const;
  const refsOf = (order: readonly (readonly [string, readonly unknown[]])[]) =>
    order.flatMap(([server, offered]) => vet(offered).tools.map((each) => mcpRef(server, each)));

  test("have refs of their own, whatever they are called, and in any order of the servers", () => {
    const refs = refsOf(servers);
    expect(new Set(refs).size).toBe(6);
    expect(refsOf(servers.toReversed()).toSorted()).toEqual(refs.toSorted());
  });
});
