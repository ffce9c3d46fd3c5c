import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { Fault } from "../functions/contract/fault.ts";
import type {
  Clock,
  EventConsumer,
  EventQueue,
  Log,
  QueueMessage,
  ReceivedMessage,
} from "../functions/contract/ports.ts";
import { quoted } from "../functions/contract/printable.ts";
import { MAX_BODY_BYTES, verifyMessage } from "./queue-message.ts";
import { openQueueTables, type QueueStatements, type Row } from "./queue-tables.ts";
import { inTransaction } from "./sqlite.ts";

/**
 * The queues of one machine, all in one SQLite file that several processes use at the same time. What was sent is on
 * the disk before `send` resolves, and what a killed process had in hand is handed out again after the visibility
 * timeout. As in SQS, delivery is at least once, several messages of one group may be handed out together and in their
 * order, a duplicate is known for five minutes even when its original is long gone, and a message is moved to the dead
 * letters when it would be handed out once too often. Other than SQS, parts of seconds count.
 */

export type EmbeddedEventQueueOptions = {
  /** Directory of the file; made when missing. */
  readonly directory: string;
  /** Queues of other names in the directory are others. */
  readonly name: string;
  /** Keeps the order of each group, and drops duplicates. */
  readonly fifo: boolean;
  readonly clock: Clock;
  /** Is told, at level error, of every message that is moved to the dead letters. */
  readonly log: Log;
  /** From sending to the first time that a message can be handed out. */
  readonly delaySeconds: number;
  readonly visibilitySeconds: number;
  /** A message that was handed out so often is not handed out again. */
  readonly maxReceives: number;
  readonly limits?: Partial<EmbeddedQueueLimits>;
};

export type EmbeddedQueueLimits = {
  readonly maxBodyBytes: number;
  /** How long a message waits to be removed. */
  readonly retentionSeconds: number;
  /** How long a dead letter is kept after its death. */
  readonly deadLetterSeconds: number;
  /** How long a second message of the same deduplication id is dropped. */
  readonly deduplicationSeconds: number;
};

const DAY_SECONDS = 24 * 3600;
const LIMITS: EmbeddedQueueLimits = {
  maxBodyBytes: MAX_BODY_BYTES,
  retentionSeconds: 4 * DAY_SECONDS,
  deadLetterSeconds: 14 * DAY_SECONDS,
  deduplicationSeconds: 5 * 60,
};

/** As SQS allows. */
const MAX_HIDDEN_SECONDS = 12 * 3600;

export type DeadLetter = QueueMessage & {
  readonly id: string;
  readonly reason: string;
  readonly receiveCount: number;
  /** Both in epoch ms. */
  readonly sentAt: number;
  readonly diedAt: number;
};

export type EmbeddedEventQueue = EventQueue &
  EventConsumer & {
    /** In the order in which they were sent; all of them when `max` is left out. */
    deadLetters(page?: { readonly max: number }): readonly DeadLetter[];
    /** Puts every dead letter back, as if it were sent at this moment and without a delay; answers how many. */
    redrive(): number;
    close(): void;
  };

type Queue = Omit<EmbeddedEventQueueOptions, "directory" | "limits"> & {
  readonly limits: EmbeddedQueueLimits;
  readonly database: DatabaseSync;
  readonly statements: QueueStatements;
};

/** Throws when the file is no database of ours, or another process keeps it to itself. */
export function openEmbeddedEventQueue({
  directory,
  limits,
  ...options
}: EmbeddedEventQueueOptions): EmbeddedEventQueue {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { database, statements } = openQueueTables(join(directory, "queues.sqlite"));
  const queue: Queue = { ...options, limits: { ...LIMITS, ...limits }, database, statements };
  return {
    send: async (message) => send(message, queue),
    receive: async ({ max }) => receive(max, queue),
    remove: async (receipt) => Number(statements.remove.run(queue.name, receipt).changes) > 0,
    hide: async (receipt, seconds) => hide(receipt, seconds, queue),
    deadLetters: ({ max } = { max: -1 }) => statements.letters.all(queue.name, max).map(toDeadLetter),
    redrive: () => redrive(queue),
    close: () => database.close(),
  };
}

function send(message: QueueMessage, queue: Queue): void {
  const { name, fifo, clock, delaySeconds, limits, database, statements } = queue;
  verifyMessage(message, { fifo, maxBytes: limits.maxBodyBytes });
  const { body, group = null, deduplicationId = null } = message;
  inTransaction(database, () => {
    const now = Math.floor(clock());
    forgetOld(now, queue);
    if (deduplicationId !== null && isDuplicate(deduplicationId, now, queue)) return;
    statements.insert.run(name, randomUUID(), body, group, deduplicationId, now, later(now, delaySeconds));
  });
}

/** True when the id is known; notes it when it is not. */
function isDuplicate(deduplicationId: string, now: number, { name, statements }: Queue): boolean {
  return Number(statements.noteId.run(name, deduplicationId, now).changes) === 0;
}

function forgetOld(now: number, { name, limits, statements }: Queue): void {
  statements.forgetMessages.run(name, now - limits.retentionSeconds * 1000);
  statements.forgetIds.run(name, now - limits.deduplicationSeconds * 1000);
  statements.forgetLetters.run(name, now - limits.deadLetterSeconds * 1000);
}

/** Rounded up: a delay is a promise that nothing comes sooner. */
function later(now: number, seconds: number): number {
  return now + Math.ceil(seconds * 1000);
}

function receive(max: number, queue: Queue): readonly ReceivedMessage[] {
  // An idle consumer asks many times a second, and must not keep others from writing.
  if (max < 1 || findDue(Math.floor(queue.clock()), 1, queue).length === 0) return [];
  // The time is taken inside: to get there may have taken a while, and the visibility timeout begins then.
  const { handed, buried } = inTransaction(queue.database, () => handOut(Math.floor(queue.clock()), max, queue));
  for (const row of buried) {
    const fields = { queue: queue.name, message_id: String(row.id), receive_count: Number(row.receives) };
    queue.log("error", "message moved to the dead letters", { ...fields, body: quoted(String(row.body)) });
  }
  return handed;
}

function findDue(now: number, max: number, { name, statements }: Queue): readonly Row[] {
  return statements.due.all({ queue: name, now, max });
}

type Handed = { readonly handed: readonly ReceivedMessage[]; readonly buried: readonly Row[] };

function handOut(now: number, max: number, queue: Queue): Handed {
  forgetOld(now, queue);
  const buried: Row[] = [];
  for (;;) {
    const due = findDue(now, max, queue);
    const spent = due.filter((row) => Number(row.receives) >= queue.maxReceives);
    if (spent.length === 0) return { handed: due.map((row) => handOutOne(now, row, queue)), buried };
    for (const row of spent) bury(now, row, queue);
    buried.push(...spent);
  }
}

function bury(now: number, { seq, receives }: Row, { statements }: Queue): void {
  statements.bury.run(now, `handed out ${receives} times and never removed`, Number(seq));
  statements.removeBuried.run(Number(seq));
}

function handOutOne(now: number, row: Row, { visibilitySeconds, statements }: Queue): ReceivedMessage {
  const receipt = randomUUID();
  statements.handOut.run(receipt, later(now, visibilitySeconds), now, Number(row.seq));
  return {
    ...toMessage(row),
    id: String(row.id),
    receipt,
    sentAt: Number(row.sent_at),
    firstReceivedAt: Number(row.first_received_at ?? now),
    receiveCount: Number(row.receives) + 1,
  };
}

function toMessage({ body, group_id, deduplication_id }: Row): QueueMessage {
  return {
    body: String(body),
    ...(typeof group_id === "string" ? { group: group_id } : {}),
    ...(typeof deduplication_id === "string" ? { deduplicationId: deduplication_id } : {}),
  };
}

function hide(receipt: string, seconds: number, { name, clock, statements }: Queue): boolean {
  if (!(seconds >= 0 && seconds <= MAX_HIDDEN_SECONDS)) {
    throw new Fault("DEFECT", `a message can be hidden for 0 to ${MAX_HIDDEN_SECONDS} seconds, not for ${seconds}`);
  }
  const now = Math.floor(clock());
  return Number(statements.hide.run(later(now, seconds), name, receipt, now).changes) > 0;
}

function toDeadLetter(row: Row): DeadLetter {
  return {
    ...toMessage(row),
    id: String(row.id),
    reason: String(row.reason),
    receiveCount: Number(row.receives),
    sentAt: Number(row.sent_at),
    diedAt: Number(row.died_at),
  };
}

function redrive({ name, clock, database, statements }: Queue): number {
  return inTransaction(database, () => {
    const now = Math.floor(clock());
    statements.revive.run(now, now, name);
    return Number(statements.removeLetters.run(name).changes);
  });
}
