import type { Installation } from "../../../functions/catalog/catalog.ts";
import { readPublished } from "../../../functions/catalog/published-catalog.ts";
import { LIST_CHANGED } from "../../../functions/contract/notification.ts";
import type { QueueMessage, ReceivedMessage } from "../../../functions/contract/ports.ts";
import type { CatalogRecord } from "../../../functions/contract/refresh.ts";
import { toDebounceRules } from "../../../functions/refresh/debounce.ts";
import { createFakeToolSource } from "../../kit/fake-tool-source.ts";
import type { Logged } from "../../kit/http-events.ts";
import { createManualClock } from "../../kit/manual-clock.ts";
import { createMemoryObjectStore } from "../../kit/memory-object-store.ts";
import type { Files } from "../repository/skills-on-disk.ts";
import { installedWith } from "./installed.ts";

/** The refresh path's use cases over a store in memory, servers in the test, and a clock by hand. */

export const START = Date.UTC(2026, 10, 30, 12);

export function refreshWorld(
  servers: readonly string[],
  options: { readonly approvals?: readonly string[]; readonly files?: Files } = {},
) {
  const clock = createManualClock(START);
  const store = createMemoryObjectStore({ clock: clock.now });
  const toolSource = createFakeToolSource(servers);
  const sent: QueueMessage[] = [];
  const logged: Logged[] = [];
  const installed: Installation = installedWith(servers, options);
  const context = {
    installed,
    store,
    toolSource,
    refreshQueue: { send: async (message: QueueMessage) => void sent.push(message) },
    clock: clock.now,
    log: (level: string, message: string, fields = {}) => void logged.push({ level, message, fields: { ...fields } }),
    rules: toDebounceRules({ debounceSeconds: 1, longestWaitSeconds: 15, delaySeconds: 1.5 }),
    servers: new Set(servers),
    maxListAgeMs: 24 * 3600_000,
    listTimeoutMs: 5_000,
    refreshTimeoutMs: 10_000,
    publishTimeoutMs: 5_000,
    listedAtOnce: 4,
  };
  return {
    context,
    clock,
    store,
    toolSource,
    sent,
    logged,
    published: async (): Promise<CatalogRecord | undefined> => (await readPublished(store))?.record,
  };
}

/** A message as a queue hands it out. */
export function received(body: unknown, changes: Partial<ReceivedMessage> = {}): ReceivedMessage {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const sentAt = changes.sentAt ?? START;
  return { id: "m1", receipt: "r1", body: text, sentAt, firstReceivedAt: sentAt + 10, receiveCount: 1, ...changes };
}

export const listChanged = (server: string) => ({ server, method: LIST_CHANGED });
