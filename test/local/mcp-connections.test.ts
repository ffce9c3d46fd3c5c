import { describe, expect, test } from "vitest";
import { LIST_CHANGED } from "../../functions/contract/notification.ts";
import type { QueueMessage } from "../../functions/contract/ports.ts";
import { MCPToolAdapter } from "../../functions/mcp/client/adapter.ts";
import { passOn } from "../../local/mcp-connections.ts";
import type { Logged } from "../kit/http-events.ts";
import { createManualTimer } from "../kit/manual-timer.ts";
import { overHttp, secretsOf } from "../kit/mcp-peers.ts";

const PAUSE_MS = 250;

/** An adapter that the test speaks through, and what it makes of the queue. */
function world(send?: () => Promise<void>) {
  const timer = createManualTimer();
  const sent: QueueMessage[] = [];
  const logged: Logged[] = [];
  const log = (level: string, message: string, fields = {}) =>
    void logged.push({ level, message, fields: { ...fields } });
  const adapter = new MCPToolAdapter({
    config: overHttp("http://127.0.0.1:9/mcp"),
    readSecret: secretsOf({}),
    clock: timer.now,
    timer: timer.timer,
    random: () => 0,
    log,
  });
  const queue = { send: send ?? (async (message: QueueMessage) => void sent.push(message)) };
  passOn({ queue, timer: timer.timer, log, pauseMs: PAUSE_MS })(adapter, "s1");
  return { timer, sent, logged, notify: () => adapter.dispatchNotification(LIST_CHANGED), adapter };
}

describe("what a server says of its list", () => {
  test("is queued at once", () => {
    const { sent, notify } = world();
    notify();
    expect(sent.map(({ body }) => JSON.parse(body))).toEqual([{ server: "s1", method: LIST_CHANGED, source: "watch" }]);
  });

  test("in a loop is queued once a pause, and once after the last: none is lost", () => {
    const { timer, sent, notify } = world();
    for (let said = 0; said < 10_000; said += 1) {
      notify();
      if (said % 10 === 0) timer.advance(1);
    }
    expect(sent).toHaveLength(1_000 / PAUSE_MS + 1);
    timer.advance(PAUSE_MS);
    expect(sent).toHaveLength(1_000 / PAUSE_MS + 2);
    timer.advance(10 * PAUSE_MS);
    expect(sent).toHaveLength(1_000 / PAUSE_MS + 2);
    notify();
    expect(sent).toHaveLength(1_000 / PAUSE_MS + 3);
  });

  test("of anything else is not queued", () => {
    const { sent, adapter } = world();
    adapter.dispatchNotification("notifications/message", { level: "info" });
    expect(sent).toEqual([]);
  });

  test("that cannot be queued is logged and harms nobody", async () => {
    const { logged, notify } = world(async () => {
      throw new Error("out of order");
    });
    notify();
    await expect.poll(() => logged.map(({ level }) => level)).toEqual(["error"]);
  });
});
