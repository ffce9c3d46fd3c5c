import { describe, expect, test } from "vitest";
import { Fault } from "../../../functions/contract/fault.ts";
import { DEBOUNCE_PREFIX } from "../../../functions/contract/store-layout.ts";
import { readDebounceRecord } from "../../../functions/refresh/debounce-store.ts";
import { takeNotifications } from "../../../functions/refresh/take-notifications.ts";
import { listChanged, received, refreshWorld, START } from "./refresh-world.ts";

const bodies = (sent: readonly { readonly body: string }[]) => sent.map(({ body }) => JSON.parse(body));

describe("notifications", () => {
  test("of one server and window become one message, in its group, under the id of its bucket", async () => {
    const { context, sent, store } = refreshWorld(["s1"]);
    const messages = [0, 300, 999].map((ms, index) =>
      received(listChanged("s1"), { id: `m${index}`, sentAt: START + ms }),
    );
    expect(await takeNotifications(messages, context)).toEqual(new Map());
    const bucket = START / 1_000;
    expect(sent).toEqual([
      {
        body: JSON.stringify({ server: "s1", bucket, sources: ["caller"] }),
        group: "s1",
        deduplicationId: `s1:${bucket}`,
      },
    ]);
    expect(await readDebounceRecord(store, "s1")).toEqual({ newest: bucket, pendingSince: START });
  });

  test("of several servers and windows become one message each", async () => {
    const { context, sent } = refreshWorld(["s1", "s2"]);
    const messages = [
      received(listChanged("s1"), { id: "a", sentAt: START }),
      received(listChanged("s2"), { id: "b", sentAt: START }),
      received(listChanged("s1"), { id: "c", sentAt: START + 1_000 }),
    ];
    await takeNotifications(messages, context);
    expect(sent.map(({ deduplicationId }) => deduplicationId).toSorted()).toEqual([
      `s1:${START / 1_000}`,
      `s1:${START / 1_000 + 1}`,
      `s2:${START / 1_000}`,
    ]);
  });

  test("that are delivered again bear the same id, so that the queue drops the second message", async () => {
    const { context, sent } = refreshWorld(["s1"]);
    for (const receiveCount of [1, 2]) {
      await takeNotifications([received(listChanged("s1"), { receiveCount })], context);
    }
    expect(new Set(sent.map(({ deduplicationId }) => deduplicationId)).size).toBe(1);
  });

  test("from the future count as sent when they were received, so that nothing waits for a bucket that is far off", async () => {
    const { context, sent } = refreshWorld(["s1"]);
    const message = received(listChanged("s1"), { sentAt: START + 3600_000, firstReceivedAt: START });
    await takeNotifications([message], context);
    expect(bodies(sent)).toMatchObject([{ bucket: START / 1_000 }]);
  });

  test.each([
    ["no JSON", "{", "/"],
    ["no object", "[]", "/"],
    ["an unknown server", JSON.stringify(listChanged("s9")), "s1"],
    ["a server of odd characters", JSON.stringify(listChanged("s\u0000")), "/server"],
    ["a server of half a character", JSON.stringify(listChanged("s\ud800")), "surrogate"],
    ["a server whose name is a key of every object", JSON.stringify(listChanged("constructor")), "s1"],
    ["another method", JSON.stringify({ server: "s1", method: "notifications/resources/updated" }), "/method"],
    ["an unknown field", JSON.stringify({ ...listChanged("s1"), at: "2099-01-01" }), "at"],
    ["a field twice", `{"server":"s1","server":"s1","method":"notifications/tools/list_changed"}`, "twice"],
  ])("of %s fail alone, with the reason, and lose no neighbour", async (_, body, named) => {
    const { context, sent } = refreshWorld(["s1"]);
    const failed = await takeNotifications(
      [received(body, { id: "bad" }), received(listChanged("s1"), { id: "good" })],
      context,
    );
    expect([...failed.keys()]).toEqual(["bad"]);
    expect(failed.get("bad")).toMatchObject({ code: "REQUEST_INVALID" });
    expect(failed.get("bad")?.message).toContain(named === "twice" ? "server" : named === "/" ? "" : named);
    expect(sent).toHaveLength(1);
  });

  test("fail with their own server only, when its message cannot be sent", async () => {
    const { context, store } = refreshWorld(["s1", "s2"]);
    const refreshQueue = {
      send: async ({ group }: { readonly group?: string | undefined }) => {
        if (group === "s1") throw new Error("the queue is out of order");
      },
    };
    const messages = [received(listChanged("s1"), { id: "a" }), received(listChanged("s2"), { id: "b" })];
    const failed = await takeNotifications(messages, { ...context, refreshQueue });
    expect([...failed.keys()]).toEqual(["a"]);
    expect(failed.get("a")).toBeInstanceOf(Fault);
    expect(await readDebounceRecord(store, "s1")).toBeUndefined();
    expect(await readDebounceRecord(store, "s2")).toBeDefined();
  });
});

test("a record that cannot be read counts as none, and is replaced", async () => {
  const { context, store } = refreshWorld(["s1"]);
  await store.put({ key: `${DEBOUNCE_PREFIX}s1.json`, bytes: Buffer.from("{"), mediaType: "application/json" });
  expect(await readDebounceRecord(store, "s1")).toBeUndefined();
  expect(await takeNotifications([received(listChanged("s1"))], context)).toEqual(new Map());
  expect(await readDebounceRecord(store, "s1")).toMatchObject({ newest: START / 1_000 });
});

test("a record that the store cannot give costs no notification, and is written over", async () => {
  const world = refreshWorld(["s1"]);
  let damaged = true;
  const store = {
    ...world.store,
    get: async (key: string, limits: { readonly maxBytes: number }) => {
      if (damaged) throw new Error("the content is damaged on the disk");
      return world.store.get(key, limits);
    },
  };
  await world.store.put({
    key: `${DEBOUNCE_PREFIX}s1.json`,
    bytes: Buffer.alloc(2_000),
    mediaType: "application/json",
  });
  expect(await takeNotifications([received(listChanged("s1"))], { ...world.context, store })).toEqual(new Map());
  damaged = false;
  expect(await readDebounceRecord(store, "s1")).toMatchObject({ newest: START / 1_000 });
});

test("of many functions that note at once, none loses the newest bucket", async () => {
  const { context, store } = refreshWorld(["s1"]);
  const batches = Array.from({ length: 20 }, (_, index) => [
    received(listChanged("s1"), { id: `m${index}`, sentAt: START + index * 1_000 }),
  ]);
  const failed = await Promise.all(batches.map((batch) => takeNotifications(batch, context)));
  expect(failed.flatMap((each) => [...each])).toEqual([]);
  expect(await readDebounceRecord(store, "s1")).toEqual({ newest: START / 1_000 + 19, pendingSince: START });
});
