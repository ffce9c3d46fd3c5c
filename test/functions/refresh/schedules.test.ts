import { describe, expect, test } from "vitest";
import { CATALOG_KEY } from "../../../functions/contract/store-layout.ts";
import { findBroken, range, SCHEDULES } from "./schedules.ts";

test(`over the first half of ${SCHEDULES} schedules, nothing is lost, starves or stampedes`, {
  timeout: 240_000,
}, async () => {
  expect(await findBroken(range(0, SCHEDULES / 2))).toEqual([]);
});

describe("a wrong design is found out by the same schedules:", () => {
  test("one deduplication id a server, which swallows what comes within five minutes", async () => {
    const broken = await findBroken(range(0, 500), {
      wrapRefreshQueue: (queue) => ({
        send: (message) => queue.send({ ...message, deduplicationId: message.group ?? "" }),
      }),
    });
    expect(broken).not.toEqual([]);
  });

  test("what is pending is cleared when the fetch has ended, instead of when it began", async () => {
    const broken = await findBroken(range(0, 2_000), {
      wrapStore: (store, time) => ({
        ...store,
        put: (request) =>
          store.put(
            request.key === CATALOG_KEY ? { ...request, bytes: coveredNow(request.bytes, time.now()) } : request,
          ),
      }),
    });
    expect(broken).not.toEqual([]);
  });
});

/** As if every notification that had come by the time of publishing were answered. */
function coveredNow(bytes: Uint8Array, now: number): Uint8Array {
  const text = Buffer.from(bytes).toString("utf8");
  return Buffer.from(text.replace(/"covered_until":[1-9]\d*/g, `"covered_until":${Math.floor(now)}`));
}
