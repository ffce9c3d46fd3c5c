import { Fault } from "../contract/fault.ts";
import type { Clock, Log, ObjectStore } from "../contract/ports.ts";
import { CatalogRecord } from "../contract/refresh.ts";
import { CATALOG_KEY } from "../contract/store-layout.ts";
import { type Catalog, type Installation, toCatalog } from "./catalog.ts";
import { readableUntil } from "./lent-tools.ts";

/** The published catalog in the object store: one object, replaced whole by compare-and-swap. */

/** A list has 4 MiB at most; a catalog of more than this many bytes would cost every job its time. */
export const MAX_CATALOG_BYTES = 32 * 1024 * 1024;

export type Published = { readonly record: CatalogRecord; readonly etag: string };

/** Undefined when nothing was published yet. */
export async function readPublished(store: ObjectStore): Promise<Published | undefined> {
  const object = await store.get(CATALOG_KEY, { maxBytes: MAX_CATALOG_BYTES });
  return object === undefined ? undefined : { record: parseRecord(object.bytes), etag: object.etag };
}

/** False when another one was published since `previous` was read. Throws a `DEFECT` for one that is too large. */
export async function publish(
  store: ObjectStore,
  record: CatalogRecord,
  previous: Published | undefined,
  { maxBytes }: { readonly maxBytes: number } = { maxBytes: MAX_CATALOG_BYTES },
): Promise<boolean> {
  const bytes = Buffer.from(JSON.stringify(record));
  if (bytes.length > maxBytes) {
    throw new Fault("DEFECT", `the catalog has ${bytes.length} bytes, at most ${maxBytes} are published`);
  }
  const condition =
    previous === undefined ? ({ type: "absent" } as const) : ({ type: "match", etag: previous.etag } as const);
  return (await store.put({ key: CATALOG_KEY, bytes, mediaType: "application/json", condition })).stored;
}

function parseRecord(bytes: Uint8Array): CatalogRecord {
  try {
    return CatalogRecord.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  } catch (error) {
    const message = "the published catalog cannot be read; delete it to begin with the deployed one";
    throw new Fault("DEFECT", message, { cause: error });
  }
}

export type CatalogReader = {
  /** The catalog in force. */
  current(): Promise<Catalog>;
};

export type CatalogReaderOptions = {
  readonly installed: Installation;
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly maxListAgeMs: number;
  readonly log: Log;
};

type Held = { readonly catalog: Catalog; readonly etag: string | undefined; readonly until: number };

/**
 * Asks the store each time, so that what was published is in force at once everywhere, and reads the object only when
 * it is another one. When the store does not answer, the catalog that is held stays in force: approvals are by digest,
 * so an old one allows nothing that is not approved.
 */
export function createCatalogReader(options: CatalogReaderOptions): CatalogReader {
  const { log } = options;
  let held: Held | undefined;
  return {
    current: async () => {
      try {
        held = await readOver(held, options);
      } catch (error) {
        log("error", "the published catalog could not be read; the one held stays in force", { error });
        held ??= hold(options, undefined);
      }
      return held.catalog;
    },
  };
}

async function readOver(held: Held | undefined, options: CatalogReaderOptions): Promise<Held> {
  const { store, clock } = options;
  if (held?.etag === undefined) {
    const published = await readPublished(store);
    return published === undefined && held !== undefined ? held : hold(options, published);
  }
  const found = await store.getUnless(held.etag, CATALOG_KEY, { maxBytes: MAX_CATALOG_BYTES });
  if (found === "unchanged") return clock() <= held.until ? held : hold(options, toPublished(held));
  return hold(options, found === undefined ? undefined : { record: parseRecord(found.bytes), etag: found.etag });
}

function toPublished({ catalog, etag }: Held): Published | undefined {
  return catalog.record === undefined || etag === undefined ? undefined : { record: catalog.record, etag };
}

function hold({ installed, clock, maxListAgeMs }: CatalogReaderOptions, published: Published | undefined): Held {
  const age = { now: clock(), maxListAgeMs };
  const catalog = toCatalog(installed, published?.record, age);
  return { catalog, etag: published?.etag, until: readableUntil(catalog.servers, age) };
}
