import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite";
import { openDatabase } from "./sqlite.ts";

/** What the embedded queue keeps, and every statement about it. Times in epoch ms; `seq` is the order of sending. */

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, group_id TEXT,
    deduplication_id TEXT, sent_at INTEGER NOT NULL, visible_at INTEGER NOT NULL, receipt TEXT,
    receives INTEGER NOT NULL DEFAULT 0, first_received_at INTEGER
  ) STRICT;
  CREATE INDEX IF NOT EXISTS messages_by_order ON messages (queue, seq, visible_at);
  CREATE INDEX IF NOT EXISTS messages_by_group ON messages (queue, group_id, visible_at);
  CREATE INDEX IF NOT EXISTS messages_by_age ON messages (queue, sent_at);
  CREATE INDEX IF NOT EXISTS messages_by_receipt ON messages (receipt);

  CREATE TABLE IF NOT EXISTS sent_ids (
    queue TEXT NOT NULL, deduplication_id TEXT NOT NULL, sent_at INTEGER NOT NULL,
    PRIMARY KEY (queue, deduplication_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS sent_ids_by_age ON sent_ids (queue, sent_at);

  CREATE TABLE IF NOT EXISTS dead_letters (
    seq INTEGER PRIMARY KEY, queue TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, group_id TEXT,
    deduplication_id TEXT, sent_at INTEGER NOT NULL, receives INTEGER NOT NULL, died_at INTEGER NOT NULL,
    reason TEXT NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS dead_letters_by_age ON dead_letters (queue, died_at)`;

/**
 * Of a group, only what has no earlier message that is hidden or delayed, and only while none of its messages is in
 * somebody's hands. Where there is no group, nothing equals it, and every visible message is due.
 */
const DUE = `
  SELECT seq, id, body, group_id, deduplication_id, sent_at, first_received_at, receives FROM messages AS due
  WHERE queue = :queue AND visible_at <= :now AND NOT EXISTS (
    SELECT 1 FROM messages AS other
    WHERE other.queue = :queue AND other.group_id = due.group_id AND other.visible_at > :now
      AND (other.seq < due.seq OR other.receipt IS NOT NULL)
  )
  ORDER BY seq LIMIT :max`;

export type Row = Readonly<Record<string, SQLOutputValue>>;
export type QueueStatements = ReturnType<typeof prepareAll>;

/** Made when missing. Throws when the file is no database of ours, or another process keeps it to itself. */
export function openQueueTables(path: string): {
  readonly database: DatabaseSync;
  readonly statements: QueueStatements;
} {
  const database = openDatabase(path, SCHEMA);
  return { database, statements: prepareAll(database) };
}

function prepareAll(database: DatabaseSync) {
  const prepare = (sql: string): StatementSync => database.prepare(sql);
  return {
    due: prepare(DUE),
    forgetMessages: prepare("DELETE FROM messages WHERE queue = ? AND sent_at <= ?"),
    forgetIds: prepare("DELETE FROM sent_ids WHERE queue = ? AND sent_at <= ?"),
    forgetLetters: prepare("DELETE FROM dead_letters WHERE queue = ? AND died_at <= ?"),
    noteId: prepare("INSERT OR IGNORE INTO sent_ids (queue, deduplication_id, sent_at) VALUES (?, ?, ?)"),
    insert: prepare(`
      INSERT INTO messages (queue, id, body, group_id, deduplication_id, sent_at, visible_at)
      VALUES (?, ?, ?, ?, ?, ?, ?)`),
    handOut: prepare(`
      UPDATE messages SET receipt = ?, visible_at = ?, receives = receives + 1,
        first_received_at = coalesce(first_received_at, ?)
      WHERE seq = ?`),
    remove: prepare("DELETE FROM messages WHERE queue = ? AND receipt = ?"),
    hide: prepare("UPDATE messages SET visible_at = ? WHERE queue = ? AND receipt = ? AND visible_at > ?"),
    bury: prepare(`
      INSERT INTO dead_letters (seq, queue, id, body, group_id, deduplication_id, sent_at, receives, died_at, reason)
      SELECT seq, queue, id, body, group_id, deduplication_id, sent_at, receives, ?, ? FROM messages WHERE seq = ?`),
    removeBuried: prepare("DELETE FROM messages WHERE seq = ?"),
    letters: prepare("SELECT * FROM dead_letters WHERE queue = ? ORDER BY seq LIMIT ?"),
    revive: prepare(`
      INSERT INTO messages (queue, id, body, group_id, deduplication_id, sent_at, visible_at)
      SELECT queue, id, body, group_id, deduplication_id, ?, ? FROM dead_letters WHERE queue = ? ORDER BY seq`),
    removeLetters: prepare("DELETE FROM dead_letters WHERE queue = ?"),
  };
}
