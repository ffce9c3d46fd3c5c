import { createHash } from "node:crypto";
import fs, { writeSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { type EmbeddedObjectStore, openEmbeddedObjectStore } from "../../local/embedded-object-store.ts";

/**
 * A process of its own on a store's directory, for what only a second process can show. Started as
 * `node store-process.ts <directory> <task> <name>`; every line on its standard output is there before it goes on.
 */

const KEYS = 5;
const MEDIA_TYPE = "application/octet-stream";

/** Bytes that tell where they belong: their size and content follow from key and round. */
export function toContent(key: string, round: string): Uint8Array {
  const head = Buffer.from(`${key} ${round}\n`);
  const seed = createHash("sha256").update(head).digest();
  const blocks = seed.readUInt16BE() % 3000;
  return Buffer.concat([head, ...Array.from({ length: blocks }, () => seed)]);
}

/** Undefined when the bytes are not whole. */
export function toRound(key: string, bytes: Uint8Array): string | undefined {
  const [head = ""] = Buffer.from(bytes).toString("latin1").split("\n", 1);
  const [foundKey, round = ""] = head.split(" ");
  return foundKey === key && Buffer.compare(toContent(key, round), bytes) === 0 ? round : undefined;
}

type Task = (store: EmbeddedObjectStore, name: string) => Promise<void>;

const TASKS: ReadonlyMap<string, Task> = new Map([
  ["write", writeForEver],
  ["die", dieAtStep],
  ["replace", replaceOften],
  ["increment", incrementOften],
  ["claim", claimAbsentKeys],
  ["link", tellLink],
]);

/** Puts, replaces and deletes until killed. */
async function writeForEver(store: EmbeddedObjectStore, name: string): Promise<void> {
  for (let index = 0; ; index += 1) {
    const key = `k${index % KEYS}`;
    const round = `${name}.${index}`;
    await act(store, index % 7 === 6 ? "delete" : "put", key, round);
  }
}

/** Replaces one object and deletes another, and is killed just before the step of that number. */
async function dieAtStep(store: EmbeddedObjectStore, step: string): Promise<void> {
  await act(store, "put", "k0", `${step}.old`);
  await act(store, "put", "k1", `${step}.old`);
  killAtStep(Number(step));
  await act(store, "put", "k0", `${step}.new`);
  await act(store, "delete", "k1", "");
}

/** A step is a call to the file system or to the database. */
function killAtStep(last: number): void {
  let steps = 0;
  const count = () => {
    steps += 1;
    if (steps === last) process.kill(process.pid, "SIGKILL");
  };
  for (const name of ["openSync", "writeFileSync", "fsyncSync", "closeSync", "rmSync"]) callBefore(fs, name, count);
  for (const name of ["run", "get"]) callBefore(StatementSync.prototype, name, count);
  callBefore(DatabaseSync.prototype, "exec", count);
  syncBuiltinESMExports();
}

function callBefore(owner: object, name: string, count: () => void): void {
  const original = Reflect.get(owner, name);
  Reflect.set(owner, name, function (this: unknown, ...values: unknown[]) {
    count();
    return Reflect.apply(original, this, values);
  });
}

/** Tells an act before (`begin`) and after it (`end`). */
async function act(store: EmbeddedObjectStore, what: "put" | "delete", key: string, round: string): Promise<void> {
  say(`begin ${what} ${key} ${round}`);
  if (what === "delete") await store.delete(key);
  else await store.put({ key, bytes: toContent(key, round), mediaType: MEDIA_TYPE });
  say(`end ${what} ${key} ${round}`);
}

async function replaceOften(store: EmbeddedObjectStore, name: string): Promise<void> {
  for (let index = 0; index < 120; index += 1) {
    await store.put({ key: "k0", bytes: toContent("k0", `${name}.${index}`), mediaType: MEDIA_TYPE });
    if (index === 0) say("begun");
  }
}

async function incrementOften(store: EmbeddedObjectStore): Promise<void> {
  say("begun");
  for (let done = 0; done < 20; done += (await incremented(store)) ? 1 : 0);
}

/** False when another process was faster. */
export async function incremented(store: EmbeddedObjectStore): Promise<boolean> {
  const found = await store.get("counter", { maxBytes: 100 });
  const bytes = Buffer.from(String(Number(Buffer.from(found?.bytes ?? []).toString()) + 1));
  const condition = { type: "match", etag: found?.etag ?? "" } as const;
  return (await store.put({ key: "counter", bytes, mediaType: MEDIA_TYPE, condition })).stored;
}

async function claimAbsentKeys(store: EmbeddedObjectStore, name: string): Promise<void> {
  for (let index = 0; index < 50; index += 1) {
    const condition = { type: "absent" } as const;
    const key = `claim-${index}`;
    const { stored } = await store.put({ key, bytes: Buffer.from(name), mediaType: MEDIA_TYPE, condition });
    if (stored) say(key);
  }
}

async function tellLink(store: EmbeddedObjectStore): Promise<void> {
  say((await store.presign("a", { fileName: "a.txt", mediaType: "text/plain", seconds: 60 })).url);
}

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

if (import.meta.main) {
  const [directory = "", task = "", name = ""] = process.argv.slice(2);
  const store = openEmbeddedObjectStore({ directory, clock: () => 1000, baseUrl: () => "http://127.0.0.1:1" });
  await TASKS.get(task)?.(store, name);
  store.close();
}
