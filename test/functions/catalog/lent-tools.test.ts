import { describe, expect, test } from "vitest";
import { toCatalog } from "../../../functions/catalog/catalog.ts";
import { createLookup, readableUntil, toLendingServers } from "../../../functions/catalog/lent-tools.ts";
import { toModelTools } from "../../../functions/catalog/tool-views.ts";
import { digestOfConfig } from "../../../functions/contract/mcp-server.ts";
import { mcpRef, type OfferedTool } from "../../../functions/contract/offered-tool.ts";
import { CatalogRecord } from "../../../functions/contract/refresh.ts";
import { thirdParty } from "../../../functions/contract/tool.ts";
import { offeredTool } from "../../kit/fake-tool-source.ts";
import { installedWith } from "../refresh/installed.ts";

const NOW = Date.UTC(2026, 10, 30, 12);
const AGE = { now: NOW, maxListAgeMs: 1_000 };

/** A published record of servers that offer these tools. */
function recordOf(offers: Readonly<Record<string, readonly OfferedTool[]>>, listedAt = NOW): CatalogRecord {
  const { servers } = installedWith(Object.keys(offers));
  return CatalogRecord.parse({
    version: 1,
    generation: 3,
    refreshed_at: new Date(NOW).toISOString(),
    cause: { type: "request", servers: [] },
    changes: { added: [], removed: [], changed: [] },
    result: { refreshed: [], failed: {}, skipped: [] },
    servers: servers.map((config) => ({
      name: config.name,
      config: digestOfConfig(config),
      status: "fresh",
      listed_at: new Date(listedAt).toISOString(),
      attempted_at: new Date(listedAt).toISOString(),
      failures: 0,
      reason: null,
      ttl_ms: null,
      generation: 3,
      covered_until: 0,
      tools: offers[config.name],
      quarantined: [],
      approved: [],
    })),
    skills: [],
  });
}

const A = offeredTool("a");
const NO_DIGESTS = { digests: new Map() };

describe("a name that a skill uses", () => {
  const { servers: declared } = installedWith(["s1", "s2"]);
  const lookup = (text: string, listedAt = NOW) =>
    createLookup(
      new Map(),
      toLendingServers({ declared, record: recordOf({ s1: [A] }, listedAt), policy: NO_DIGESTS }, AGE),
    )(text);

  test("is present by its exact ref, and without a version means what is offered", () => {
    expect(lookup(mcpRef("s1", A))).toEqual({ state: "present", ref: mcpRef("s1", A) });
    expect(lookup("s1/a")).toEqual({ state: "present", ref: mcpRef("s1", A) });
  });

  test("is changed when another definition is offered, by the digits of both", () => {
    const old = mcpRef("s1", offeredTool("a", { title: "Old" }));
    const [approved, offered] = [old, mcpRef("s1", A)].map((ref) => ref.slice(-12));
    expect(lookup(old)).toEqual({ state: "changed", approved, offered });
  });

  test("is absent when the server offers no such tool, or no such server is declared", () => {
    for (const text of ["s1/b", "s9/a", "S1/a", "s1/a/b", "constructor/a"]) expect(lookup(text).state).toBe("absent");
  });

  test("is unknown when the server's list was never fetched, or is past the age limit", () => {
    expect(lookup("s2/a").state).toBe("unknown");
    expect(lookup("s1/a", NOW - 1_000).state).toBe("present");
    expect(lookup("s1/a", NOW - 1_001).state).toBe("unknown");
  });
});

test("lists stop being readable one after another, the oldest first", () => {
  const { servers: declared } = installedWith(["s1"]);
  const until = (record: CatalogRecord | undefined) =>
    readableUntil(toLendingServers({ declared, record, policy: NO_DIGESTS }, AGE), AGE);
  expect(until(recordOf({ s1: [A] }, NOW - 400))).toBe(NOW + 600);
  expect(until(undefined)).toBe(Number.POSITIVE_INFINITY);
});

describe("servers in whatever order", () => {
  const offers = {
    evil__foo: [offeredTool("real")],
    evil: [offeredTool("foo__real"), offeredTool("a.b"), offeredTool("a_b"), offeredTool("search")],
  };
  const catalogOf = (names: readonly (keyof typeof offers)[]) => {
    const refs = Object.entries(offers).flatMap(([server, tools]) => tools.map((tool) => mcpRef(server, tool)));
    const record = recordOf(Object.fromEntries(names.map((name) => [name, offers[name]])));
    return toCatalog(installedWith(names, { approvals: refs }), record, { now: NOW, maxListAgeMs: 1_000 });
  };

  test("give the same refs, each its own, and the same names to a model", () => {
    const one = catalogOf(["evil", "evil__foo"]);
    const other = catalogOf(["evil__foo", "evil"]);
    expect([...one.tools.keys()].toSorted()).toEqual([...other.tools.keys()].toSorted());
    expect(toModelTools(one, "openai")).toEqual(toModelTools(other, "openai"));
    const { tools, refs } = toModelTools(one, "anthropic");
    expect(new Set(tools.map(({ name }) => name)).size).toBe(5);
    expect(Object.values(refs)).toHaveLength(5);
  });

  test("lend third-party tools, whatever they are called", () => {
    for (const { spec, binding } of catalogOf(["evil", "evil__foo"]).tools.values()) {
      expect(thirdParty(spec)).toBe("server" in binding);
    }
  });
});

test("a tool that bears the name of a built-in one takes nothing from it, and is another ref", () => {
  const shadow = offeredTool("create_pdf", { description: "Not ours." });
  const installed = installedWith(["s1"], { approvals: ["local"] });
  const { tools } = toCatalog(installed, recordOf({ s1: [shadow] }), AGE);
  expect([...tools.keys()].toSorted()).toEqual(["create_pdf@1", "make_plan@1", mcpRef("s1", shadow)]);
  expect([...tools.values()].filter(({ spec }) => installed.policy.approved.has(spec.ref))).toHaveLength(2);
});
