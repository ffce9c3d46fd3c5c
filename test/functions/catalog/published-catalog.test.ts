import { describe, expect, test } from "vitest";
import { createCatalogReader, publish, readPublished } from "../../../functions/catalog/published-catalog.ts";
import type { CatalogRecord } from "../../../functions/contract/refresh.ts";
import { CATALOG_KEY } from "../../../functions/contract/store-layout.ts";
import { refreshServers } from "../../../functions/refresh/refresh-servers.ts";
import { offeredTool } from "../../kit/fake-tool-source.ts";
import { refreshWorld } from "../refresh/refresh-world.ts";
import { instructions } from "./catalogs.ts";
import "../../kit/to-fail.ts";

async function world() {
  const made = refreshWorld(["s1"], { files: instructions("acme/far", { tools: ["s1/a"] }) });
  made.toolSource.server("s1").tools = [offeredTool("a")];
  const refreshed = await refreshServers({ servers: ["s1"], cause: "request", dryRun: false }, made.context);
  const record: CatalogRecord = refreshed.ok ? refreshed.value : expect.unreachable();
  return { ...made, record };
}

describe("the published catalog", () => {
  test("is there or is not, and what cannot be read is said to be so", async () => {
    const { store, record } = await world();
    expect((await readPublished(store))?.record).toEqual(record);
    await store.put({ key: CATALOG_KEY, bytes: Buffer.from("{}"), mediaType: "application/json" });
    await expect(readPublished(store)).rejects.toThrow(/cannot be read; delete it/);
    await store.delete(CATALOG_KEY);
    expect(await readPublished(store)).toBeUndefined();
  });

  test("has so many bytes at most and not one more", async () => {
    const { store, record } = await world();
    const previous = await readPublished(store);
    const bytes = Buffer.byteLength(JSON.stringify({ ...record, generation: 2 }));
    await expect(publish(store, { ...record, generation: 2 }, previous, { maxBytes: bytes - 1 })).rejects.toThrow(
      /bytes/,
    );
    expect(await publish(store, { ...record, generation: 2 }, previous, { maxBytes: bytes })).toBe(true);
  });
});

describe("a reader", () => {
  const outcome = async (reader: ReturnType<typeof createCatalogReader>) =>
    (await reader.current()).lastRefresh.toSummary();

  test("reads the object once, and anew only when it is another one", async () => {
    const made = await world();
    let read = 0;
    const store = {
      ...made.store,
      get: async (key: string, limits: { readonly maxBytes: number }) => {
        read += 1;
        return made.store.get(key, limits);
      },
    };
    const reader = createCatalogReader({ ...made.context, store });
    for (const _ of [1, 2, 3]) expect((await reader.current()).generation).toBe(1);
    expect(read).toBe(1);
    await refreshServers({ servers: [], cause: "request", dryRun: false }, made.context);
    expect((await reader.current()).generation).toBe(2);
  });

  test("sees a list grow too old though nothing was published since", async () => {
    const made = await world();
    const reader = createCatalogReader(made.context);
    made.clock.advance(made.context.maxListAgeMs);
    expect(await outcome(reader)).toBe("refreshed: 1, failed: 0, skipped: 0");
    made.clock.advance(1);
    expect(await outcome(reader)).toBe("refreshed: 0, failed: 0, skipped: 1");
  });

  test("goes back to what was deployed when the object is gone", async () => {
    const made = await world();
    const reader = createCatalogReader(made.context);
    expect((await reader.current()).generation).toBe(1);
    await made.store.delete(CATALOG_KEY);
    expect((await reader.current()).generation).toBe(0);
  });
});
