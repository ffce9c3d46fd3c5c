import { expect, test } from "vitest";
import { yieldingStore } from "../../local/yielding-store.ts";
import { createMemoryObjectStore } from "../kit/memory-object-store.ts";

test("a loop over a store that never waits leaves a turn to everybody else", async () => {
  const store = yieldingStore(createMemoryObjectStore({ clock: () => 0 }));
  let asked = 0;
  let isOver = false;
  const loop = async () => {
    while (!isOver) {
      await store.get("jobs/a/b.json", { maxBytes: 1 });
      asked += 1;
    }
  };
  const looping = loop();
  await new Promise((done) => setTimeout(done, 20));
  isOver = true;
  await looping;
  expect(asked).toBeGreaterThan(0);
});

test("what is asked for is done as by the store itself", async () => {
  const inner = createMemoryObjectStore({ clock: () => 0 });
  const store = yieldingStore(inner);
  const bytes = Buffer.from("x");
  const put = await store.put({ key: "a/b", bytes, mediaType: "text/plain", condition: { type: "absent" } });
  expect(put).toMatchObject({ stored: true });
  expect(await store.put({ key: "a/b", bytes, mediaType: "text/plain", condition: { type: "absent" } })).toEqual({
    stored: false,
  });
  expect(await store.list("a/", { limit: 5 })).toEqual(await inner.list("a/", { limit: 5 }));
  await store.delete("a/b");
  expect(await inner.get("a/b", { maxBytes: 5 })).toBeUndefined();
});
