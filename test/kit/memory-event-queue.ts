import type {
  Clock,
  EventConsumer,
  EventQueue,
  QueueMessage,
  ReceivedMessage,
} from "../../functions/contract/ports.ts";
import { MAX_BODY_BYTES, verifyMessage } from "../../local/queue-message.ts";

/**
 * The event queue that tests use when queueing is not what they are about, cheap enough for tens of thousands of
 * schedules. Held to the port's contract suite. Unlike the others it keeps a message for ever.
 */

export type MemoryEventQueueOptions = {
  readonly clock: Clock;
  readonly fifo: boolean;
  readonly delayMs: number;
  readonly visibilityMs: number;
  readonly maxReceives: number;
};

export type MemoryEventQueue = EventQueue &
  EventConsumer & {
    /** What was handed out too often, as it was handed out the last time; in the order of dying. */
    deadLetters(): readonly ReceivedMessage[];
  };

const DEDUPLICATION_MS = 5 * 60_000;

type Kept = {
  readonly message: QueueMessage;
  readonly sentAt: number;
  visibleAt: number;
  /** As it was handed out the last time; undefined when it never was. */
  handed?: ReceivedMessage;
};

type Queue = MemoryEventQueueOptions & {
  /** In the order of sending. */
  readonly kept: Kept[];
  readonly sentIds: Map<string, number>;
  readonly dead: ReceivedMessage[];
  count: number;
};

export function createMemoryEventQueue(options: MemoryEventQueueOptions): MemoryEventQueue {
  const queue: Queue = { ...options, kept: [], sentIds: new Map(), dead: [], count: 0 };
  return {
    send: async (message) => send(message, queue),
    receive: async ({ max }) => receive(max, queue),
    remove: async (receipt) => {
      const kept = find(receipt, queue);
      if (kept !== undefined) drop(kept, queue);
      return kept !== undefined;
    },
    hide: async (receipt, seconds) => {
      const kept = find(receipt, queue);
      const now = queue.clock();
      if (kept === undefined || kept.visibleAt <= now) return false;
      kept.visibleAt = now + seconds * 1000;
      return true;
    },
    deadLetters: () => [...queue.dead],
  };
}

function send(message: QueueMessage, { fifo, clock, delayMs, kept, sentIds }: Queue): void {
  verifyMessage(message, { fifo, maxBytes: MAX_BODY_BYTES });
  const now = clock();
  const { deduplicationId } = message;
  if (deduplicationId !== undefined) {
    if (now - (sentIds.get(deduplicationId) ?? Number.NEGATIVE_INFINITY) < DEDUPLICATION_MS) return;
    sentIds.set(deduplicationId, now);
  }
  kept.push({ message, sentAt: now, visibleAt: now + delayMs });
}

function receive(max: number, queue: Queue): readonly ReceivedMessage[] {
  const now = queue.clock();
  // An earlier message that is still delayed closes nothing: the later ones were delayed for as long.
  const closed = groupsInHand(now, queue);
  const handed: ReceivedMessage[] = [];
  for (const kept of [...queue.kept]) {
    if (handed.length >= max) break;
    const { group } = kept.message;
    if (group !== undefined && closed.has(group)) continue;
    if (kept.visibleAt <= now) handed.push(...handOut(kept, now, queue));
  }
  return handed;
}

function groupsInHand(now: number, { kept }: Queue): Set<string> {
  const inHand = kept.filter(({ handed, visibleAt }) => handed !== undefined && visibleAt > now);
  return new Set(inHand.flatMap(({ message }) => message.group ?? []));
}

/** Nothing when the message dies instead. */
function handOut(kept: Kept, now: number, queue: Queue): readonly ReceivedMessage[] {
  const { message, sentAt, handed: before } = kept;
  if (before !== undefined && before.receiveCount >= queue.maxReceives) {
    drop(kept, queue);
    queue.dead.push(before);
    return [];
  }
  queue.count += 1;
  const handed = {
    ...message,
    id: before?.id ?? `m${queue.count}`,
    receipt: `r${queue.count}`,
    sentAt,
    firstReceivedAt: before?.firstReceivedAt ?? now,
    receiveCount: (before?.receiveCount ?? 0) + 1,
  };
  kept.handed = handed;
  kept.visibleAt = now + queue.visibilityMs;
  return [handed];
}

function find(receipt: string, { kept }: Queue): Kept | undefined {
  return kept.find(({ handed }) => handed?.receipt === receipt);
}

function drop(gone: Kept, { kept }: Queue): void {
  kept.splice(kept.indexOf(gone), 1);
}
