import { DatabaseSync } from "node:sqlite";

/** Databases that several processes use at the same time, and in which a commit survives a kill and a power cut. */

/** The file is made when missing; `schema` must bear being run again. */
export function openDatabase(path: string, schema: string): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  database.exec(schema);
  return database;
}

/** One process at a time is inside, of all that use the file. Throws with nothing changed. */
export function inTransaction<T>(database: DatabaseSync, act: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = act();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}
