import { describe, expect, test } from "vitest";
import { refuse, succeed } from "../../../../functions/contract/fault.ts";
import { DEFAULT_LIST_LIMITS, type FetchPage, listTools } from "../../../../functions/mcp/client/list-tools.ts";
import "../../../kit/to-fail.ts";

const tool = (name: string) => ({ name, description: "d", inputSchema: { type: "object", properties: {} } });

type Page = { readonly tools?: unknown; readonly nextCursor?: unknown; readonly ttlMs?: unknown };

/** Pages by the cursor that leads to them; the first has none. Each answer has ten bytes. */
function pages(first: Page, others: Readonly<Record<string, Page>> = {}): FetchPage {
  return async (cursor) => succeed({ result: cursor === undefined ? first : others[cursor], bytes: 10 });
}

/** A server that always has one more page. */
const endless: FetchPage = async (cursor) => {
  const index = Number(cursor ?? 0);
  return succeed({ result: { tools: [tool(`t${index}`)], nextCursor: String(index + 1) }, bytes: 10 });
};

const list = (fetchPage: FetchPage, limits: Partial<typeof DEFAULT_LIST_LIMITS> = {}) =>
  listTools(fetchPage, {
    limits: { ...DEFAULT_LIST_LIMITS, ...limits },
    redact: (text) => text,
    mirrorsArguments: true,
  });

const namesOf = async (fetchPage: FetchPage) => {
  const listing = await list(fetchPage);
  return listing.ok ? listing.value.tools.map(({ name }) => name) : listing.fault.message;
};

describe("a list", () => {
  test("has the tools of all pages", async () => {
    const three = pages(
      { tools: [tool("a")], nextCursor: "c1" },
      { c1: { tools: [tool("b")], nextCursor: "c2" }, c2: { tools: [tool("c")] } },
    );
    expect(await namesOf(three)).toEqual(["a", "b", "c"]);
  });

  test("is nothing when its third page fails", async () => {
    const failing: FetchPage = async (cursor) =>
      cursor === "2" ? refuse("SERVER_UNAVAILABLE", "reset") : endless(cursor);
    expect(await list(failing)).toFail("SERVER_UNAVAILABLE");
  });

  test("goes on after an empty cursor, which is one", async () => {
    expect(await namesOf(pages({ tools: [tool("a")], nextCursor: "" }, { "": { tools: [tool("b")] } }))).toEqual([
      "a",
      "b",
    ]);
  });

  test("may have a page without tools, and ends at a cursor that is null", async () => {
    expect(
      await namesOf(pages({ tools: [], nextCursor: "n" }, { n: { tools: [tool("a")], nextCursor: null } })),
    ).toEqual(["a"]);
  });

  test("of no tools is a list", async () => {
    expect(await list(pages({ tools: [] }))).toEqual(succeed({ tools: [], quarantined: [] }));
  });

  test("keeps the good tools of a page with a broken one", async () => {
    const listing = await list(pages({ tools: [tool("a"), { name: "broken" }, 7] }));
    expect(listing).toMatchObject({ value: { tools: [{ name: "a" }], quarantined: [{}, { name: "broken" }] } });
  });

  test.each([
    ["its own page", pages({ tools: [], nextCursor: "a" }, { a: { tools: [], nextCursor: "a" } }), 2],
    ["its own page by an empty cursor", pages({ tools: [], nextCursor: "" }, { "": { tools: [], nextCursor: "" } }), 2],
    [
      "an earlier page",
      pages(
        { tools: [], nextCursor: "a" },
        { a: { tools: [], nextCursor: "b" }, b: { tools: [], nextCursor: "c" }, c: { tools: [], nextCursor: "a" } },
      ),
      4,
    ],
  ])("that leads back to %s is refused and not walked for ever", async (_, circle, page) => {
    expect(await namesOf(circle)).toBe(`page ${page} of its list leads back to an earlier one`);
  });

  test.each([
    ["no object", "text"],
    ["nothing", undefined],
    ["an object without tools", {}],
    ["tools that are no list", { tools: {} }],
    ["a cursor that is a number", { tools: [], nextCursor: 1 }],
  ])("is refused when a page is %s", async (_, page) => {
    const fetchPage: FetchPage = async () => succeed({ result: page, bytes: 10 });
    expect(await list(fetchPage)).toFail("SERVER_UNAVAILABLE");
    expect(await namesOf(fetchPage)).toMatch(/^page 1 of its list is none: \//);
  });
});

describe("a list at its limits", () => {
  const ending = (last: number): FetchPage => {
    return async (cursor) =>
      Number(cursor ?? 0) === last ? succeed({ result: { tools: [tool("last")] }, bytes: 10 }) : endless(cursor);
  };

  test("may have the most pages, and no page more", async () => {
    expect(await list(ending(4), { maxPages: 5 })).toMatchObject({ ok: true });
    expect(await list(ending(5), { maxPages: 5 })).toFail("SERVER_UNAVAILABLE");
  });

  test("may have the most tools, and no tool more", async () => {
    expect(await list(ending(4), { maxTools: 5 })).toMatchObject({ ok: true });
    expect(await list(ending(5), { maxTools: 5 })).toFail("SERVER_UNAVAILABLE");
  });

  test("may have the most bytes of all pages together, and no byte more", async () => {
    expect(await list(ending(4), { maxBytes: 50 })).toMatchObject({ ok: true });
    expect(await list(ending(4), { maxBytes: 49 })).toFail("SERVER_UNAVAILABLE");
  });

  test("ends although the server always has another page", async () => {
    let asked = 0;
    const counted: FetchPage = (cursor) => {
      asked += 1;
      return endless(cursor);
    };
    expect(await list(counted)).toFail("SERVER_UNAVAILABLE");
    expect(asked).toBe(DEFAULT_LIST_LIMITS.maxPages);
  });
});

describe("how long a list is good", () => {
  test.each([
    [[300_000], 300_000],
    [[300_000, 1_000, 5_000], 1_000],
    [[0, 5], 0],
    [[undefined, 7], 7],
    [[-1, "10", 1.5, null, Number.MAX_VALUE, 9], 9],
    [[-1], undefined],
    [[undefined], undefined],
  ])("is the least that its pages say: %j -> %s", async (lifetimes, expected) => {
    const fetchPage: FetchPage = async (cursor) => {
      const index = Number(cursor ?? 0);
      const more = index + 1 < lifetimes.length ? { nextCursor: String(index + 1) } : {};
      return succeed({ result: { tools: [], ttlMs: lifetimes[index], ...more }, bytes: 10 });
    };
    const listing = await list(fetchPage);
    expect(listing.ok && listing.value.ttlMs).toBe(expected);
  });
});
