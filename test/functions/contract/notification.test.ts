import { expect, test } from "vitest";
import { LIST_CHANGED, Notification, RefreshMessage } from "../../../functions/contract/notification.ts";

const NOTIFICATION = { server: "s1", method: LIST_CHANGED };

test.each([[{}], [{ params: {} }], [{ params: { any: [1] } }], [{ source: "watch" }], [{ server: "x".repeat(64) }]])(
  "a notification may hold %j",
  (changes) => {
    expect(Notification.safeParse({ ...NOTIFICATION, ...changes }).success).toBe(true);
  },
);

test.each([
  [{ server: "x".repeat(65) }],
  [{ server: "a/b" }],
  [{ server: 1 }],
  [{ method: "notifications/tools/listChanged" }],
  [{ method: undefined }],
  [{ params: "x" }],
  [{ source: "somebody" }],
  [{ id: 1 }],
  [{ jsonrpc: "2.0" }],
])("a notification may not hold %j", (changes) => {
  expect(Notification.safeParse({ ...NOTIFICATION, ...changes }).success).toBe(false);
});

test("a refresh message names its server, its bucket and who told", () => {
  const message = { server: "s1", bucket: 0, sources: ["caller"] };
  expect(RefreshMessage.safeParse(message).success).toBe(true);
  for (const changes of [{ bucket: -1 }, { bucket: 1.5 }, { sources: [] }, { sources: ["x"] }, { more: 1 }]) {
    expect(RefreshMessage.safeParse({ ...message, ...changes }).success).toBe(false);
  }
});
