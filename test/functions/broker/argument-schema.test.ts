import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createArgumentChecker } from "../../../functions/broker/argument-schema.ts";
import { MAX_CHECK_STEPS } from "../../../functions/broker/compile-schema.ts";
import type { JsonObject } from "../../../functions/contract/tool.ts";
import { toolOf } from "./tools.ts";
import "../../kit/to-fail.ts";

const check = (inputSchema: JsonObject, given: JsonObject) =>
  createArgumentChecker()(toolOf("demo@1", { inputSchema }).spec, given);

async function violationsOf(inputSchema: JsonObject, given: JsonObject) {
  const checked = await check(inputSchema, given);
  if (checked.ok) return [];
  expect(checked).toFail("TOOL_INPUT_INVALID");
  return checked.fault.violations;
}

const pathsOf = async (inputSchema: JsonObject, given: JsonObject) =>
  (await violationsOf(inputSchema, given)).map(({ path }) => path);

const closed = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: "object",
  additionalProperties: false,
  properties,
  ...more,
});

describe("dialects", () => {
  const TUPLE = { a: ["x", "y"] };

  test.each([
    [
      "2020-12",
      {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: { a: { prefixItems: [{ type: "string" }], items: false } },
      },
    ],
    [
      "2020-12 with an empty fragment",
      {
        $schema: "https://json-schema.org/draft/2020-12/schema#",
        type: "object",
        properties: { a: { prefixItems: [{}], items: false } },
      },
    ],
    ["none, which means 2020-12", { type: "object", properties: { a: { prefixItems: [{}], items: false } } }],
    [
      "draft-07",
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        type: "object",
        properties: { a: { items: [{ type: "string" }], additionalItems: false } },
      },
    ],
    [
      "draft-07 without a fragment",
      {
        $schema: "http://json-schema.org/draft-07/schema",
        type: "object",
        properties: { a: { items: [{}], additionalItems: false } },
      },
    ],
    [
      "a reference to a definition",
      { type: "object", $defs: { d: { type: "string" } }, properties: { a: { $ref: "#/$defs/d" } } },
    ],
    ["unevaluated properties", { type: "object", allOf: [{ properties: { b: {} } }], unevaluatedProperties: false }],
  ])("%s is understood", async (_, schema) => {
    expect(await check(schema, TUPLE)).toFail("TOOL_INPUT_INVALID");
    expect((await check(schema, {})).ok).toBe(true);
  });

  test.each([
    ["an unknown dialect", { $schema: "http://example.test/unknown", type: "object" }],
    ["a dialect that is no text", { $schema: 7, type: "object" }],
    ["draft-04", { $schema: "http://json-schema.org/draft-04/schema#", type: "object" }],
    ["a reference into the network", { type: "object", properties: { a: { $ref: "http://127.0.0.1:1/schema.json" } } }],
    ["a reference to nothing", { type: "object", properties: { a: { $ref: "#/$defs/none" } } }],
    ["a reference to a file", { type: "object", properties: { a: { $ref: "file:///etc/passwd" } } }],
    ["a type that is none", { type: "objekt" }],
    ["a minimum that is a text", { type: "object", properties: { a: { minimum: "1" } } }],
    ["a look-ahead", { type: "object", properties: { a: { pattern: "^(?=a)a" } } }],
    ["a back reference", { type: "object", properties: { a: { pattern: "(a)\\1" } } }],
    ["a pattern that is none", { type: "object", properties: { a: { pattern: "(" } } }],
    ["an asynchronous schema", { $async: true, type: "object", required: ["a"] }],
    ["a reference to itself", { type: "object", $ref: "#" }],
    [
      "two references to each other",
      { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } },
    ],
  ])("%s makes the tool unavailable, at every call", async (_, inputSchema) => {
    const checker = createArgumentChecker();
    const { spec } = toolOf("demo@1", { inputSchema });
    for (const given of [{}, { a: "a" }]) expect(await checker(spec, given)).toFail("TOOL_UNAVAILABLE");
  });

  test("a tree may refer to itself, at its root too", async () => {
    const tree = closed({ name: { type: "string" }, children: { type: "array", items: { $ref: "#" } } });
    expect(await pathsOf(tree, { name: "a", children: [{ name: "b", children: [{ name: 1 }] }] })).toEqual([
      "/children/0/children/0/name",
    ]);
  });

  test("two schemas with one $id do not meet", async () => {
    const checker = createArgumentChecker();
    const of = (ref: string, type: string) =>
      toolOf(ref, { inputSchema: { $id: "https://x.test/s", type: "object", properties: { a: { type } } } }).spec;
    expect((await checker(of("one@1", "string"), { a: "x" })).ok).toBe(true);
    expect(await checker(of("two@1", "number"), { a: "x" })).toFail("TOOL_INPUT_INVALID");
  });
});

describe("patterns", () => {
  test.each([
    ["^(a+)+$", `${"a".repeat(200_000)}!`],
    ["^(a|a)*$", `${"a".repeat(200_000)}!`],
    ["(x+x+)+y", "x".repeat(200_000)],
    ["^([a-z]+\\.)+[a-z]+$", `${"a.".repeat(100_000)}!`],
  ])("%s takes no time", async (pattern, text) => {
    const started = performance.now();
    expect(await pathsOf({ type: "object", properties: { s: { pattern } } }, { s: text })).toEqual(["/s"]);
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  test.each([
    ["b", "abc", true],
    ["^b", "abc", false],
    ["^a$", "a\n", false],
    ["^.$", "😀", true],
    ["^\\u00e9$", "é", true],
    ["^[\\u0020-\\u007e]*$", "a\u0007", false],
    ["^[^]$", "\n", true],
    ["^\\p{L}+$", "é日", true],
    ["^\\d{4}-\\d{2}$", "2026-12", true],
    ["^[\\w.+-]+@[\\w-]+$", "a.b+c@d", true],
    ["^https?:\\/\\/", "http://x", true],
    ["^(?<year>\\d+)$", "2026", true],
  ])("%s on %j, as JavaScript means it: %s", async (pattern, text, matches) => {
    expect(new RegExp(pattern, "u").test(text)).toBe(matches);
    expect((await check({ type: "object", properties: { s: { pattern } } }, { s: text })).ok).toBe(matches);
  });

  test("two patterns of one schema are two, and names may have patterns", async () => {
    const schema = {
      type: "object",
      properties: { a: { pattern: "^a$" }, b: { pattern: "^b$" } },
      patternProperties: { "^x(a+)+$": { type: "number" } },
    };
    expect(await pathsOf(schema, { a: "a", b: "b", xa: 1 })).toEqual([]);
    expect(await pathsOf(schema, { a: "b", b: "a", xaa: "1" })).toEqual(["/a", "/b", "/xaa"]);
  });
});

describe("violations", () => {
  test("name every unknown argument, sorted, in the message too", async () => {
    const schema = closed({ body: { type: "string" } }, { required: ["body"] });
    const checked = await check(schema, { fliename: "a.pdf", Title: "t", constructor: 1 });
    if (checked.ok) throw new Error("accepted");
    expect(checked.fault.violations.map(({ path }) => path)).toEqual(["/Title", "/constructor", "/fliename", "/body"]);
    for (const name of ["Title", "constructor", "fliename", "body"]) expect(checked.fault.message).toContain(name);
  });

  test("point into what was given, by JSON Pointer", async () => {
    const schema = closed({
      "a/b": closed({ "~": { type: "array", items: closed({ c: { type: "integer" } }, { required: ["c"] }) } }),
    });
    expect(await pathsOf(schema, { "a/b": { "~": [{ c: 1 }, { c: "x" }, { "d/~": 1 }] } })).toEqual([
      "/a~1b/~0/2/d~1~0",
      "/a~1b/~0/1/c",
      "/a~1b/~0/2/c",
    ]);
  });

  test("say of null that an optional argument is left out instead", async () => {
    expect(await violationsOf(closed({ title: { type: "string" } }), { title: null })).toEqual([
      { path: "/title", message: expect.stringMatching(/string.*null.*leave/) },
    ]);
  });

  test.each([
    [{ type: "string" }, 5, /string.*number/],
    [{ type: ["string", "null"] }, [], /string or null.*array/],
    [{ enum: ["a", 1] }, "b", /"a",1/],
    [{ type: "integer" }, 1.5, /integer/],
    [{ multipleOf: 5 }, 7, /5/],
  ])("say what was wanted: %j, given %j", async (schema, value, message) => {
    expect(await violationsOf(closed({ a: schema }), { a: value })).toEqual([
      { path: "/a", message: expect.stringMatching(message) },
    ]);
  });

  test("hold no value that was given", async () => {
    const schemas = [
      ...[{ type: "number" }, { enum: ["x"] }, { const: "x" }, { pattern: "^x$" }, { maxLength: 1 }, { minLength: 99 }],
      ...[
        { not: {} },
        { anyOf: [{ type: "number" }, { const: 1 }] },
        { oneOf: [{}, {}] },
        false,
        { format: "email", maxLength: 3 },
      ],
    ];
    for (const schema of schemas) {
      const checked = await check(closed({ a: schema }), { a: "SECRET-4711" });
      expect(
        JSON.stringify(checked.ok ? "SECRET" : [checked.fault.message, checked.fault.violations]),
        JSON.stringify(schema),
      ).not.toContain("SECRET");
    }
  });

  test("are at most fifty, however many there are", async () => {
    const given = Object.fromEntries(Array.from({ length: 30_000 }, (_, index) => [`k${index}`, 0]));
    expect(await violationsOf(closed({}), given)).toHaveLength(50);
  });
});

describe("values", () => {
  test("lengths count code points", async () => {
    const schema = closed({ a: { type: "string", minLength: 2, maxLength: 3 } });
    expect(await pathsOf(schema, { a: "😀" })).toEqual(["/a"]);
    expect(await pathsOf(schema, { a: "😀😀😀" })).toEqual([]);
    expect(await pathsOf(schema, { a: "😀😀😀😀" })).toEqual(["/a"]);
  });

  test("an argument counts only when it was given, whatever its name", async () => {
    for (const name of ["constructor", "toString", "hasOwnProperty"]) {
      expect(await pathsOf({ type: "object", required: [name] }, {})).toEqual([`/${name}`]);
      expect(await pathsOf(closed({ [name]: { type: "number" } }), {})).toEqual([]);
    }
  });

  test("a text is no number, and nothing is changed or filled in", async () => {
    const given = { a: "5" };
    const schema = { type: "object", properties: { a: { type: "number" }, b: { default: 1 } } };
    expect(await pathsOf(schema, given)).toEqual(["/a"]);
    expect(given).toEqual({ a: "5" });
  });

  test("unique items are told apart as JSON values, in no time", async () => {
    const schema = closed({ a: { type: "array", uniqueItems: true } });
    expect(await pathsOf(schema, { a: [1, "1", [1], { a: 1, b: 2 }, { a: 1 }, null, true, "true"] })).toEqual([]);
    expect(await pathsOf(schema, { a: [{ a: 1, b: 2 }, 1, { b: 2, a: 1 }] })).toEqual(["/a"]);
    expect(await pathsOf(closed({ a: { uniqueItems: false } }), { a: [1, 1] })).toEqual([]);
    const started = performance.now();
    expect(await pathsOf(schema, { a: Array.from({ length: 30_000 }, (_, index) => ({ i: index })) })).toEqual([]);
    expect(performance.now() - started).toBeLessThan(3_000);
  });

  test("unique items agree with comparing each with each", async () => {
    const checker = createArgumentChecker();
    const { spec } = toolOf("demo@1", { inputSchema: closed({ a: { uniqueItems: true } }) });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 6 }), async (items) => {
        const same = (a: unknown, b: unknown) => {
          try {
            expect(a).toEqual(b);
            return true;
          } catch {
            return false;
          }
        };
        const plain: unknown[] = JSON.parse(JSON.stringify(items));
        const twins = plain.some((item, index) => plain.slice(index + 1).some((other) => same(item, other)));
        expect((await checker(spec, { a: plain })).ok).toBe(!twins);
      }),
      { numRuns: 200 },
    );
  });
});

describe("work", () => {
  /** Each definition refers twice to the next one, so the last is applied two to the power of `depth` times. */
  const doubling = (depth: number, keyword: string): JsonObject => {
    const twice = (next: number) => ({ [keyword]: [{ $ref: `#/$defs/d${next}` }, { $ref: `#/$defs/d${next}` }] });
    const definitions = Array.from({ length: depth }, (_, index) => [`d${index}`, twice(index + 1)]);
    const $defs = Object.fromEntries([...definitions, [`d${depth}`, { type: "string" }]]);
    return { type: "object", $defs, properties: { a: { $ref: "#/$defs/d0" } } };
  };

  test.each(["anyOf", "allOf", "oneOf"])(
    "that doubles with every definition (%s) makes the tool unavailable",
    async (keyword) => {
      expect(await check(doubling(40, keyword), { a: 1 })).toFail("TOOL_UNAVAILABLE");
      expect(await check(doubling(4, keyword), { a: 1 })).toFail("TOOL_INPUT_INVALID");
    },
  );

  test("that doubles with the depth of the arguments makes the tool unavailable", async () => {
    const self = { $ref: "#/$defs/node" };
    const node = { type: "object", properties: { next: { allOf: [self, self] } } };
    const given = Array.from({ length: 40 }).reduce<JsonObject>((inner) => ({ next: inner }), {});
    expect(await check({ type: "object", $defs: { node }, allOf: [self] }, given)).toFail("TOOL_UNAVAILABLE");
  });

  test("is allowed up to the limit and not one step more", async () => {
    const schema = { type: "object", properties: { a: { items: {} } } };
    // The root and the array are a step each.
    const items = (count: number) => ({ a: Array.from({ length: count }, () => 1) });
    expect((await check(schema, items(MAX_CHECK_STEPS - 2))).ok).toBe(true);
    expect(await check(schema, items(MAX_CHECK_STEPS - 1))).toFail("TOOL_UNAVAILABLE");
  });

  test("is counted anew for each call", async () => {
    const checker = createArgumentChecker();
    const tool = toolOf("demo@1", { inputSchema: { type: "object", properties: { a: { items: {} } } } }).spec;
    for (let call = 0; call < 12; call += 1) {
      expect((await checker(tool, { a: Array.from({ length: 100_000 }, () => 1) })).ok).toBe(true);
    }
  });

  test("does not lead into values that look like schemas", async () => {
    const schema = { type: "object", properties: { a: { const: { properties: { b: {} } }, default: { items: {} } } } };
    expect((await check(schema, { a: { properties: { b: {} } } })).ok).toBe(true);
  });
});

test.each([
  [0.01, 19.99, true],
  [0.01, 19.999, false],
  [0.1, 0.3, true],
  [5, 15, true],
  [5, 16, false],
])("a multiple of %d is meant in decimals: %d is one: %s", async (multipleOf, n, fits) => {
  expect((await check({ type: "object", properties: { n: { multipleOf } } }, { n })).ok).toBe(fits);
});
