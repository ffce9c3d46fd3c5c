import { readPublished } from "../../../functions/catalog/published-catalog.ts";
import { refuse, succeed } from "../../../functions/contract/fault.ts";
import { LIST_CHANGED } from "../../../functions/contract/notification.ts";
import type {
  Clock,
  EventConsumer,
  EventQueue,
  FailedMessages,
  ObjectStore,
  ReceivedMessage,
  ToolSource,
} from "../../../functions/contract/ports.ts";
import { CatalogRecord } from "../../../functions/contract/refresh.ts";
import { LISTED_AT_ONCE, LISTING_DEADLINE_MS, PUBLISHING_MS } from "../../../functions/contract/refresh-limits.ts";
import { CATALOG_KEY, DEBOUNCE_PREFIX } from "../../../functions/contract/store-layout.ts";
import type { DebounceRules } from "../../../functions/refresh/debounce.ts";
import { reconcile } from "../../../functions/refresh/reconcile.ts";
import { refreshServers } from "../../../functions/refresh/refresh-servers.ts";
import { takeNotifications } from "../../../functions/refresh/take-notifications.ts";
import { takeRefreshes } from "../../../functions/refresh/take-refreshes.ts";
import { createMemoryEventQueue } from "../../kit/memory-event-queue.ts";
import { createMemoryObjectStore } from "../../kit/memory-object-store.ts";
import { installedWith } from "./installed.ts";
import { createVirtualTime, type VirtualTime } from "./virtual-time.ts";

/**
 * The refresh path as it is deployed, in virtual time: the real use cases over queues and a store that keep their
 * contracts, run by functions that may die at any step, be run twice, be slow, and have clocks of their own.
 */

export type Schedule = {
  readonly seed: number;
  readonly servers: number;
  readonly rules: DebounceRules;
  /** The server's list changes, and its notification is sent, ms after the start; `copies` times. */
  readonly changes: readonly { readonly at: number; readonly server: number; readonly copies: number }[];
  /** Somebody asks for a refresh of all servers. */
  readonly requests: readonly number[];
  /** Probability that a function dies at a step, before or after it took effect. */
  readonly crash: number;
  /** Probability that a list fails. */
  readonly failing: number;
  /** Probability that a list is not answered at all, until the time for it is over. */
  readonly hanging: number;
  /** Most ms that fetching a list takes. */
  readonly listMs: number;
  /** Probability that the removal of a message that was handled is lost. */
  readonly redelivery: number;
  /** Probability that a server's debounce record is gone when a function looks. */
  readonly amnesia: number;
  /** Most ms that the clock of a function is wrong, either way. */
  readonly skewMs: number;
};

/** What a wrong design does differently. */
export type Sabotage = {
  readonly wrapRefreshQueue?: (queue: EventQueue) => EventQueue;
  readonly wrapStore?: (store: ObjectStore, time: VirtualTime) => ObjectStore;
};

export type Publication = {
  readonly at: number;
  readonly generation: number;
  readonly cause: string;
  readonly servers: readonly string[];
  /** Version of each server's list in it; undefined for none. */
  readonly versions: ReadonlyMap<string, number>;
  /** Servers whose list this publication fetched. */
  readonly fetched: ReadonlySet<string>;
};

export type Outcome = {
  readonly publications: readonly Publication[];
  /** What each server offers at the end. */
  readonly offered: ReadonlyMap<string, number>;
  /** When each change was made and told, by server; `version` is what the server offered from then on. */
  readonly told: readonly { readonly server: string; readonly at: number; readonly version: number }[];
  readonly deadLetters: number;
  readonly crashes: number;
  readonly failures: number;
  /** Functions that did not end in their time, and were ended. */
  readonly overruns: number;
};

const START = 1_000_000_000_000;
const VISIBILITY_MS = 360_000;
/** A message may be received so often that a crash a thousand steps still loses none of a schedule's. */
const MAX_RECEIVES = 50;
/** As the refresh function is deployed. */
const FUNCTION_MS = 60_000;
const STEP_MS = 20;
const BATCH = 10;
const RECONCILE_EVERY_MS = 600_000;
/** By then whatever died was run again. */
const QUIET_MS = 60 * 60_000;
/** Long enough that no list is due by age: what is missed would stay missed. */
const RECONCILE_INTERVAL_MS = 24 * 3600_000;

export async function simulate(schedule: Schedule, sabotage: Sabotage = {}): Promise<Outcome> {
  const time = createVirtualTime(START);
  const random = createRandom(schedule.seed);
  const names = Array.from({ length: schedule.servers }, (_, index) => `s${index}`);
  const versions = new Map(names.map((name) => [name, 1]));
  const told: { server: string; at: number; version: number }[] = [];
  const publications: Publication[] = [];
  const counts = { crashes: 0, failures: 0, overruns: 0 };
  const store = createMemoryObjectStore({ clock: time.now });
  const queueOf = (fifo: boolean, delayMs: number) =>
    createMemoryEventQueue({ clock: time.now, fifo, delayMs, visibilityMs: VISIBILITY_MS, maxReceives: MAX_RECEIVES });
  const notifications = queueOf(false, 0);
  const refreshes = queueOf(true, schedule.rules.delayMs);
  const installed = installedWith(names);

  /** A function dies by never going on. */
  const step = async <T>(dying: Dying, act: () => Promise<T>): Promise<T> => {
    await time.sleep(random() * STEP_MS);
    if (random() < schedule.crash) return dying.die();
    const result = await act();
    if (random() < schedule.crash) return dying.die();
    return result;
  };

  const storeFor = (dying: Dying): ObjectStore => {
    const seen = sabotage.wrapStore?.(store, time) ?? store;
    return {
      ...seen,
      get: (key, limits) =>
        step(dying, async () => {
          if (key.startsWith(DEBOUNCE_PREFIX) && random() < schedule.amnesia) await store.delete(key);
          return seen.get(key, limits);
        }),
      put: (request) =>
        step(dying, async () => {
          const put = await seen.put(request);
          if (put.stored && request.key === CATALOG_KEY) publications.push(toPublication(request.bytes, time.now()));
          return put;
        }),
    };
  };

  const toolSourceFor = (dying: Dying, clock: Clock): ToolSource => ({
    list: (server, { deadline }) =>
      step(dying, async () => {
        if (random() < schedule.hanging) {
          counts.failures += 1;
          await time.sleep(deadline - clock());
          return refuse("SERVER_UNAVAILABLE", "did not answer in time");
        }
        const before = random() * schedule.listMs;
        await time.sleep(before);
        const version = versions.get(server) ?? 0;
        await time.sleep(random() * (schedule.listMs - before));
        if (random() < schedule.failing) {
          counts.failures += 1;
          return refuse("SERVER_UNAVAILABLE", "out of order");
        }
        const tool = { name: "tool", description: `version ${version}`, inputSchema: { type: "object" } };
        return succeed({ tools: [tool], quarantined: [] });
      }),
    openSession: () => {
      throw new Error("nobody calls");
    },
  });

  const queueFor = (dying: Dying): EventQueue => {
    const kept: EventQueue = {
      send: async (message) => {
        await refreshes.send(message);
        wakeRefresh(schedule.rules.delayMs);
      },
    };
    const seen = sabotage.wrapRefreshQueue?.(kept) ?? kept;
    return { send: (message) => step(dying, () => seen.send(message)) };
  };

  /** What one invocation runs in: its own clock, and nothing left of it once it died. */
  const invoke = async <T>(act: (world: World) => Promise<T>): Promise<T | "died"> => {
    const skew = (random() * 2 - 1) * schedule.skewMs;
    return new Promise((resolve) => {
      const clock = () => Math.round(time.now() + skew);
      let ended = false;
      time.at(time.now() + FUNCTION_MS, () => {
        if (!ended) counts.overruns += 1;
        resolve("died");
      });
      const dying: Dying = {
        die: () => {
          ended = true;
          counts.crashes += 1;
          resolve("died");
          return new Promise(() => undefined);
        },
      };
      const world: World = {
        refreshQueue: queueFor(dying),
        installed,
        store: storeFor(dying),
        toolSource: toolSourceFor(dying, clock),
        clock,
        log: () => undefined,
        rules: schedule.rules,
        servers: new Set(names),
        maxListAgeMs: 2 * RECONCILE_INTERVAL_MS,
        listTimeoutMs: LISTING_DEADLINE_MS,
        refreshTimeoutMs: LISTING_DEADLINE_MS,
        publishTimeoutMs: PUBLISHING_MS,
        listedAtOnce: LISTED_AT_ONCE,
      };
      const end = (result: T | "died") => {
        ended = true;
        resolve(result);
      };
      act(world).then(end, () => end("died"));
    });
  };

  const consume = async (
    consumer: EventConsumer,
    handle: (messages: readonly ReceivedMessage[], world: World) => Promise<FailedMessages>,
    wake: (afterMs: number) => void,
  ) => {
    const messages = await consumer.receive({ max: BATCH });
    if (messages.length === 0) return;
    wake(VISIBILITY_MS + 1);
    const failed = await invoke((world) => handle(messages, world));
    for (const { id, receipt } of messages) {
      const handled = failed !== "died" && !failed.has(id);
      if (handled && random() >= schedule.redelivery) await consumer.remove(receipt);
    }
    // Whatever waited behind these in their groups, or did not fit the batch.
    wake(0);
  };
  const wakeNotify = (afterMs: number) =>
    time.at(time.now() + afterMs, () => void consume(notifications, takeNotifications, wakeNotify));
  const wakeRefresh = (afterMs: number) =>
    time.at(time.now() + afterMs, () => void consume(refreshes, takeRefreshes, wakeRefresh));

  const notify = async (server: string) => {
    await notifications.send({ body: JSON.stringify({ server, method: LIST_CHANGED }) });
    wakeNotify(random() * STEP_MS);
  };

  for (const { at, server: index, copies } of schedule.changes) {
    time.at(START + at, () => {
      const server = names[index % names.length] ?? "";
      const version = (versions.get(server) ?? 0) + 1;
      versions.set(server, version);
      told.push({ server, at: time.now(), version });
      for (let copy = 0; copy < copies; copy += 1) void notify(server);
    });
  }
  for (const at of schedule.requests) {
    time.at(START + at, () => {
      void invoke((world) => refreshServers({ servers: names, cause: "request", dryRun: false }, world));
    });
  }
  if (schedule.failing > 0 || schedule.hanging > 0) {
    const last = Math.max(0, ...schedule.changes.map(({ at }) => at));
    // Retries of failed lists, until none is left to be retried.
    const tick = async (): Promise<void> => {
      const due = await reconcile({
        servers: installed.servers,
        store,
        notifications: {
          send: async (message) => {
            await notifications.send(message);
            wakeNotify(0);
          },
        },
        clock: time.now,
        log: () => undefined,
        due: { intervalMs: RECONCILE_INTERVAL_MS, maxListAgeMs: 2 * RECONCILE_INTERVAL_MS },
      });
      const published = await readPublished(store);
      const stale = published?.record.servers.some(({ failures }) => failures > 0) === true;
      if (due.length > 0 || stale || time.now() < START + last + QUIET_MS)
        time.at(time.now() + RECONCILE_EVERY_MS, () => void tick());
    };
    time.at(START + last + RECONCILE_EVERY_MS, () => void tick());
  }
  await time.run();
  return {
    publications,
    offered: versions,
    told,
    deadLetters: notifications.deadLetters().length + refreshes.deadLetters().length,
    ...counts,
  };
}

type Dying = { die(): Promise<never> };
type World = Parameters<typeof takeRefreshes>[1] & Parameters<typeof takeNotifications>[1];

function toPublication(bytes: Uint8Array, at: number): Publication {
  const record = CatalogRecord.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  const versionOf = (text: string | undefined) => Number(/\d+$/.exec(text ?? "")?.[0]);
  return {
    at,
    generation: record.generation,
    cause: record.cause.type,
    servers: record.cause.servers,
    versions: new Map(record.servers.map(({ name, tools }) => [name, versionOf(tools[0]?.description)])),
    fetched: new Set(
      record.servers
        .filter(({ generation, status }) => generation === record.generation && status === "fresh")
        .map(({ name }) => name),
    ),
  };
}

/** Mulberry32: small, fast, and the same everywhere. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
