import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findHeaderProblem } from "../../../../functions/mcp/client/argument-headers.ts";

const header = (name: unknown, type: unknown = "string") => ({ type, "x-mcp-header": name });
const taking = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });

describe("an argument", () => {
  test.each(["string", "integer", "boolean"])("that is a %s may be asked for in a header", (type) => {
    expect(findHeaderProblem(taking({ a: header("A", type) }))).toBeUndefined();
  });

  test("may lie in an argument, however deep", () => {
    expect(findHeaderProblem(taking({ a: taking({ b: taking({ c: header("C") }) }) }))).toBeUndefined();
  });

  test("may be asked for by any name that a header may have", () => {
    const name = "!#$%&'*+-.^_`|~09AZaz";
    expect(findHeaderProblem(taking({ a: header(name), b: header("B") }))).toBeUndefined();
  });

  test.each([
    ["", "an empty name"],
    ["a b", "a space"],
    ["a:b", "a colon"],
    ["a\r\nx-evil: 1", "a line break"],
    ["ä", "a letter that is not ASCII"],
    [7, "a number"],
    [null, "nothing"],
    [{}, "an object"],
  ])("is not asked for by %j: %s is no name of a header", (name, _) => {
    expect(findHeaderProblem(taking({ a: header(name) }))).toEqual({
      path: "/properties/a/x-mcp-header",
      message: "the name of an HTTP header wanted",
    });
  });

  test.each([["number"], ["object"], ["array"], ["null"], [["string", "null"]], [undefined]])(
    "of type %j is not asked for",
    (type) => {
      expect(findHeaderProblem(taking({ a: { type, "x-mcp-header": "A" } }))).toEqual({
        path: "/properties/a/x-mcp-header",
        message: "only a string, an integer or a boolean can be sent in a header",
      });
    },
  );

  test("is not asked for by a name that stands twice, in whatever case", () => {
    expect(findHeaderProblem(taking({ a: header("Region"), b: taking({ c: header("REGION") }) }))).toEqual({
      path: "/properties/b/properties/c/x-mcp-header",
      message: 'the name "REGION" stands twice',
    });
  });
});

describe("what is no argument of its own", () => {
  const inside = header("A");
  test.each<[string, object]>([
    ["", header("A", "object")],
    ["/properties/a/items", taking({ a: { type: "array", items: inside } })],
    ["/properties/a/items/1", taking({ a: { type: "array", items: [{}, inside] } })],
    ["/properties/a/prefixItems/0", taking({ a: { type: "array", prefixItems: [inside] } })],
    ["/properties/a/contains", taking({ a: { type: "array", contains: inside } })],
    ["/patternProperties/^a", { type: "object", patternProperties: { "^a": inside } }],
    ["/anyOf/0/properties/a", { type: "object", anyOf: [taking({ a: inside })] }],
    ["/oneOf/1", { type: "object", oneOf: [{}, inside] }],
    ["/allOf/0", { type: "object", allOf: [inside] }],
    ["/if/properties/a", { type: "object", if: taking({ a: inside }) }],
    ["/dependentSchemas/a", { type: "object", dependentSchemas: { a: inside } }],
    ["/dependencies/a", { type: "object", dependencies: { a: inside } }],
    ["/$defs/a", { type: "object", $defs: { a: inside } }],
    ["/definitions/a/properties/b", { type: "object", definitions: { a: taking({ b: inside }) } }],
  ])("is not asked for: %s", (path, schema) => {
    expect(findHeaderProblem(schema)).toEqual({
      path: `${path}/x-mcp-header`,
      message: "stands where no single argument is meant",
    });
  });

  test.each(["additionalProperties", "propertyNames", "unevaluatedProperties", "not", "if", "then", "else"])(
    "is not asked for under %s",
    (keyword) => {
      expect(findHeaderProblem({ type: "object", [keyword]: inside })?.path).toBe(`/${keyword}/x-mcp-header`);
    },
  );
});

describe("the word", () => {
  const word = { "x-mcp-header": "a b" };
  test.each<[string, object]>([
    ["a property", taking({ "x-mcp-header": { type: "string" } })],
    ["a default", taking({ a: { type: "object", default: word } })],
    ["a constant", taking({ a: { const: word } })],
    ["a list of values", taking({ a: { enum: [word] } })],
    ["an example", taking({ a: { examples: [word] } })],
    ["a field that nobody knows", taking({}, { "x-vendor": word })],
  ])("may be in or the name of %s", (_, schema) => {
    expect(findHeaderProblem(schema)).toBeUndefined();
  });
});

test("anything at all is judged without a throw", () => {
  const keys = fc.constantFrom("properties", "items", "x-mcp-header", "type", "$defs", "anyOf", "__proto__", "a");
  const { tree } = fc.letrec((tie) => ({
    leaf: fc.oneof(fc.constantFrom("string", "A", null, true), fc.integer()),
    tree: fc.oneof({ maxDepth: 6 }, tie("leaf"), fc.array(tie("tree")), fc.dictionary(keys, tie("tree"))),
  }));
  fc.assert(
    fc.property(tree, (schema) => {
      const problem = findHeaderProblem(schema);
      if (problem !== undefined) expect(problem.path).toMatch(/^\/(?:.*\/)?x-mcp-header$/);
    }),
  );
});
