import * as z from "zod";
import { Fault } from "../contract/fault.ts";
import type { ObjectStore, PutCondition } from "../contract/ports.ts";
import { DEBOUNCE_PREFIX } from "../contract/store-layout.ts";
import type { DebounceRecord } from "./debounce.ts";

/** One small record a server, changed by compare-and-swap. */

const MAX_BYTES = 1024;
/**
 * Several functions note buckets of one server at the same time; each attempt that loses means that another one won.
 */
const MAX_ATTEMPTS = 50;

const Stored = z.object({ newest: z.int().min(0), pendingSince: z.number().min(0) });

function keyOf(server: string): string {
  return `${DEBOUNCE_PREFIX}${server}.json`;
}

/** Undefined when there is none, or none that can be read: that costs one fetch more. */
export async function readDebounceRecord(store: ObjectStore, server: string): Promise<DebounceRecord | undefined> {
  return (await find(store, keyOf(server))).record;
}

type Found = { readonly record: DebounceRecord | undefined; readonly condition?: PutCondition };

/** One that cannot be read is written over whatever it is: nothing could be done about it at every later message. */
async function find(store: ObjectStore, key: string): Promise<Found> {
  try {
    const object = await store.get(key, { maxBytes: MAX_BYTES });
    if (object === undefined) return { record: undefined, condition: { type: "absent" } };
    const record = Stored.parse(JSON.parse(Buffer.from(object.bytes).toString("utf8")));
    return { record, condition: { type: "match", etag: object.etag } };
  } catch {
    return { record: undefined };
  }
}

/** Replaces the record by what `change` makes of it; nothing is written when that is the record itself, or nothing. */
export async function changeDebounceRecord(
  store: ObjectStore,
  server: string,
  change: (record: DebounceRecord | undefined) => DebounceRecord | undefined,
): Promise<void> {
  const key = keyOf(server);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const { record, ...condition } = await find(store, key);
    const next = change(record);
    if (next === undefined) return;
    if (next.newest === record?.newest && next.pendingSince === record.pendingSince) return;
    const bytes = Buffer.from(JSON.stringify(next));
    if ((await store.put({ key, bytes, mediaType: "application/json", ...condition })).stored) return;
  }
  throw new Fault("DEFECT", `the debounce record of ${server} was changed by others ${MAX_ATTEMPTS} times in a row`);
}
