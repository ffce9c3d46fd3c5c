import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { digestOfJson, parseStrictJson, toCanonicalJson } from "../../../functions/contract/json.ts";
import "../../kit/to-fail.ts";

const parse = (text: string, maxDepth = 16) => parseStrictJson(text, { maxDepth });
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

describe("strict JSON", () => {
  test.each([
    "null",
    "0",
    '""',
    "[]",
    "{}",
    " [1, 2.5e3, true] ",
    '{"a":{"a":{"a":1}}}',
    '[{"a":1},{"a":2}]',
    '{"a":"a","b":"a"}',
  ])("%s is read as JSON.parse reads it", (text) => {
    expect(parse(text)).toEqual({ ok: true, value: JSON.parse(text) });
  });

  test("a byte-order mark before it is passed over", () => {
    expect(parse('\ufeff{"a":1}')).toEqual({ ok: true, value: { a: 1 } });
    expect(parse('\ufeff\ufeff{"a":1}')).toFail("REQUEST_INVALID");
  });

  test.each([
    "",
    " \n",
    "\ufeff",
    "{",
    "[1,]",
    "{'a':1}",
    "nul",
    "NaN",
    "01",
    '"\u0001"',
    '"\\x"',
    '"',
    '{"a":1}}',
    '"\\',
    "1 2",
  ])("%j is refused", (text) => {
    expect(parse(text)).toFail("REQUEST_INVALID");
  });

  test.each([
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '{"\\u00e9":1,"é":2}',
    '{"":1,"":2}',
    '{"a":{"b":1,"c":[{}],"b":2}}',
    '[{"a":"}","a":"{"}]',
    '{"a\\"":1,"a\\u0022":2}',
  ])("a key that stands twice in one object is refused: %s", (text) => {
    expect(parse(text)).toFail("REQUEST_INVALID");
  });

  test.each([
    '{"__proto__":1}',
    '{"a":[{"__proto__":{"b":1}}]}',
    '{"\\u005f\\u005fproto__":1}',
    '{"body":"x","__proto__":{"filename":"../../x"}}',
  ])("the key __proto__ is refused at every depth and in every spelling: %s", (text) => {
    expect(parse(text)).toFail("REQUEST_INVALID");
    expect("filename" in {}).toBe(false);
  });

  test("__proto__ as a text, and constructor as a key, are data", () => {
    expect(parse('{"a":"__proto__","constructor":{"prototype":1}}').ok).toBe(true);
  });

  test("nesting is accepted at the limit and refused beyond it", () => {
    expect(parse(nested(16)).ok).toBe(true);
    expect(parse(nested(17))).toFail("REQUEST_INVALID");
    expect(parse('{"a":{"a":{}}}', 2)).toFail("REQUEST_INVALID");
    expect(parse('["[[[[", "{{{{"]', 1).ok).toBe(true);
  });

  test.each(["1e400", "-1e400", "[1e309]", '{"a":1e99999}'])("%s is out of range", (text) => {
    expect(parse(text)).toFail("REQUEST_INVALID");
  });

  test.each(['"\\ud83d"', '"\\ude00\\ud83d"', '{"\\ud83d":1}', '"\ud83d"'])(
    "a lone surrogate is refused: %j",
    (text) => {
      expect(parse(text)).toFail("REQUEST_INVALID");
    },
  );

  test("the whole of a surrogate pair is accepted, escaped or not", () => {
    expect(parse('"\\ud83d\\ude00😀"')).toEqual({ ok: true, value: "😀😀" });
  });

  test.each(['{"password":"hunter2" x', "hunter2", '["hunter2', '{"hunter2":1e999}', '"hunter2\\ud83d"'])(
    "the refusal of %j does not quote it",
    (text) => {
      const parsed = parse(text);
      expect(parsed.ok ? "" : parsed.fault.message).not.toMatch(/hunter2|^$/);
    },
  );

  test.each([
    ["a million open brackets", "[".repeat(1_000_000)],
    ["a million brackets, closed again", nested(1_000_000)],
    ["a million objects", `${'{"a":'.repeat(1_000_000)}1${"}".repeat(1_000_000)}`],
    ["a text of four million escapes", `"${"\\n".repeat(4_000_000)}`],
    ["a million backslashes", `"${"\\".repeat(1_000_001)}"`],
    ["a million digits", "1".repeat(1_000_000)],
  ])("%s are refused at once", (_, text) => {
    const started = performance.now();
    expect(parse(text)).toFail("REQUEST_INVALID");
    expect(performance.now() - started).toBeLessThan(3_000);
  });

  test("a text of four million escapes is read", () => {
    const parsed = parse(`"${"\\n".repeat(4_000_000)}"`);
    expect(parsed.ok && String(parsed.value).length).toBe(4_000_000);
  });

  test("any JSON comes back as JSON.parse gives it", () => {
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 6, noUnicodeString: false }),
        fc.constantFrom(undefined, 1, "\t"),
        (text, indent) => {
          const spaced = JSON.stringify(JSON.parse(text), undefined, indent);
          const parsed = parse(spaced, 64);
          if (parsed.ok) expect(parsed.value).toEqual(JSON.parse(spaced));
          else expect(spaced).toMatch(/__proto__/);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("any text is either a value that JSON.parse gives too, or refused; nothing is thrown", () => {
    const piece = fc.constantFrom(
      ...'{}[],:"\\ae1.-+ \n',
      "null",
      "true",
      '"a"',
      "1e999",
      "\\u0061",
      "\ud83d",
      "__proto__",
    );
    const text = fc.oneof(
      fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join("")),
      fc.string({ unit: "binary" }),
    );
    fc.assert(
      fc.property(text, (source) => {
        const parsed = parse(source);
        if (parsed.ok) expect(parsed.value).toEqual(JSON.parse(source.replace(/^\ufeff/, "")));
        else expect(parsed).toFail("REQUEST_INVALID");
      }),
      { numRuns: 5_000 },
    );
  });
});

describe("canonical JSON", () => {
  test("orders keys by code unit and writes no white space", () => {
    expect(toCanonicalJson({ b: 1, a: [2, { é: null, Z: "x", _: true }], "\ud83d\ude00": 0, "\uffff": 0 })).toBe(
      '{"a":[2,{"Z":"x","_":true,"é":null}],"b":1,"\ud83d\ude00":0,"\uffff":0}',
    );
  });

  test("leaves out what is undefined, and writes null for it in a list", () => {
    expect(toCanonicalJson({ a: undefined, b: [undefined] })).toBe('{"b":[null]}');
  });

  test("is one text for equal values, whatever the order of their keys, and reads back as the value", () => {
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([key, member]) => [key, shuffled(member)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (value, other) => {
        const text = toCanonicalJson(value);
        expect(toCanonicalJson(shuffled(value))).toBe(text);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(digestOfJson(value) === digestOfJson(other)).toBe(text === toCanonicalJson(other));
      }),
    );
  });
});

describe("whole numbers", () => {
  test.each(["9007199254740993", "-9007199254740993", '{"id":123456789012345678901234567890}'])(
    "that no double holds are refused: %s",
    (text) => {
      expect(parse(text)).toFail("REQUEST_INVALID");
    },
  );

  test.each(["9007199254740991", "9007199254740992", "1000000000000000000000", "1e21", "0.1", '"9007199254740993"'])(
    "that arrive as they were sent are accepted: %s",
    (text) => {
      expect(parse(text).ok).toBe(true);
    },
  );
});
