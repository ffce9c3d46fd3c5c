/** Compares a built event with one that AWS documents: fields and kinds of values, not the values. */

export type Difference = {
  /** Documented, not built. */
  readonly missing: readonly string[];
  /** Built, not documented. */
  readonly extra: readonly string[];
  /** Of another kind. */
  readonly differing: readonly string[];
};

/** Fields whose names are the sender's own. */
const DICTIONARIES = new Set([
  "headers",
  "queryStringParameters",
  "pathParameters",
  "claims",
  "messageAttributes",
  "detail",
]);

/** Every field by its path, elements of lists as `[]`, names of one's own as `*`; the value says of what kind it is. */
function fieldsOf(value: unknown, path = "", own = false): readonly (readonly [string, string])[] {
  if (Array.isArray(value)) {
    return [[path, "list"], ...value.flatMap((each) => fieldsOf(each, `${path}[]`))];
  }
  if (typeof value !== "object" || value === null) return [[path, value === null ? "null" : typeof value]];
  const entries = Object.entries(value);
  const inner = entries.flatMap(([name, each]) =>
    fieldsOf(each, `${path}.${own ? "*" : name}`, !own && DICTIONARIES.has(name)),
  );
  return [[path, "object"], ...inner];
}

export function compareEvents(built: unknown, documented: unknown): Difference {
  // Through JSON, as a function gets it.
  const have = new Map(fieldsOf(JSON.parse(JSON.stringify(built))));
  const want = new Map(fieldsOf(documented));
  return {
    missing: [...want.keys()].filter((path) => !have.has(path)),
    extra: [...have.keys()].filter((path) => !want.has(path)),
    differing: [...want].flatMap(([path, kind]) => (have.has(path) && have.get(path) !== kind ? [path] : [])),
  };
}
