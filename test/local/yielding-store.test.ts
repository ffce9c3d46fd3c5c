import { describe, expect, test } from "vitest";
import { yieldingStore } from "../../local/yielding-store.ts";
import { createMemoryObjectStore } from "../kit/memory-object-store.ts";

const inner = createMemoryObjectStore({ clock: () => 0 });
const store = yieldingStore(inner);
const PUT = { key: "a/b", bytes: Buffer.from("x"), mediaType: "text/plain", condition: { type: "absent" } } as const;

describe("everybody else has a turn", () => {
  test.each<[string, () => Promise<unknown>]>([
    ["put", () => store.put(PUT)],
    ["get", () => store.get("a/b", { maxBytes: 1 })],
    ["getUnless", () => store.getUnless("x", "a/b", { maxBytes: 1 })],
    ["delete", () => store.delete("a/b")],
    ["list", () => store.list("a/", { limit: 1 })],
  ])("before each %s, though the store never waits", async (_, ask) => {
    let turns = 0;
    const turn = () => {
      turns += 1;
      if (turns < 5) setImmediate(turn);
    };
    setImmediate(turn);
    for (let asked = 0; asked < 5; asked += 1) await ask();
    expect(turns).toBeGreaterThanOrEqual(4);
  });
});

test("what is asked for is done as by the store itself", async () => {
  expect(await store.put(PUT)).toMatchObject({ stored: true });
  expect(await store.put(PUT)).toEqual({ stored: false });
  expect(await store.list("a/", { limit: 5 })).toEqual(await inner.list("a/", { limit: 5 }));
  await store.delete("a/b");
  expect(await inner.get("a/b", { maxBytes: 5 })).toBeUndefined();
});
