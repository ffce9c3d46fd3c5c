import { createHash, createHmac } from "node:crypto";
import { Fault, type Outcome, refuse, succeed } from "../../functions/contract/fault.ts";
import type { Clock, LinkRequest, ObjectStore, PutCondition, StoredObject } from "../../functions/contract/ports.ts";

/** The object store that tests use when storing is not what they are about. Held to the port's contract suite. */

export type MemoryObjectStoreOptions = {
  readonly clock: Clock;
  /** Where the links point, without a trailing slash. */
  readonly baseUrl?: string;
};

export type LinkedFile = { readonly key: string; readonly fileName: string; readonly mediaType: string };

export type MemoryObjectStore = ObjectStore & {
  /** `ACCESS_DENIED` for a link that is not ours or was changed, `ARTIFACT_EXPIRED` for one that is over. */
  readLink(url: string | URL): Outcome<LinkedFile>;
};

const LINK_PATH = "/files/";
const MAX_LINK_SECONDS = 7 * 24 * 3600;

export function createMemoryObjectStore({
  clock,
  baseUrl = "http://files.test",
}: MemoryObjectStoreOptions): MemoryObjectStore {
  const objects = new Map<string, StoredObject>();
  return {
    put: async ({ key, bytes, mediaType, condition }) => {
      if (!holds(condition, objects.get(key))) return { stored: false };
      const etag = `"${createHash("sha256").update(bytes).digest("hex")}"`;
      objects.set(key, { bytes: Uint8Array.from(bytes), mediaType, etag });
      return { stored: true, etag };
    },
    get: async (key, { maxBytes }) => copyOf(objects.get(key), maxBytes),
    getUnless: async (etag, key, { maxBytes }) => {
      const found = objects.get(key);
      return found?.etag === etag ? "unchanged" : copyOf(found, maxBytes);
    },
    delete: async (key) => {
      objects.delete(key);
    },
    list: async (prefix, { limit, after }) => {
      const keys = [...objects.keys()]
        .filter((key) => key.startsWith(prefix) && (after === undefined || compareBytes(key, after) > 0))
        .sort(compareBytes);
      const page = keys.slice(0, limit);
      return { keys: page, next: keys.length > limit ? page.at(-1) : undefined };
    },
    presign: async (key, request) => {
      const seconds = Math.min(request.seconds, MAX_LINK_SECONDS);
      const expiresAt = (Math.floor(clock() / 1000) + seconds) * 1000;
      return { url: toLink(key, request, { expiresAt, baseUrl }), expiresAt };
    },
    readLink: (url) => readLink(new URL(url), clock),
  };
}

function copyOf(found: StoredObject | undefined, maxBytes: number): StoredObject | undefined {
  if (found === undefined) return undefined;
  if (found.bytes.length > maxBytes) throw new Fault("DEFECT", `an object has more than ${maxBytes} bytes`);
  return { ...found, bytes: Uint8Array.from(found.bytes) };
}

function holds(condition: PutCondition | undefined, present: StoredObject | undefined): boolean {
  if (condition === undefined) return true;
  return condition.type === "absent" ? present === undefined : present?.etag === condition.etag;
}

function compareBytes(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

function toLink(
  key: string,
  { fileName, mediaType }: LinkRequest,
  { expiresAt, baseUrl }: { expiresAt: number; baseUrl: string },
): string {
  const url = new URL(`${baseUrl}${LINK_PATH}${key}`);
  url.searchParams.set("name", fileName);
  url.searchParams.set("type", mediaType);
  url.searchParams.set("expires", String(expiresAt));
  url.searchParams.set("signature", sign([key, fileName, mediaType, String(expiresAt)]));
  return url.href;
}

function sign(fields: readonly string[]): string {
  return createHmac("sha256", "memory").update(JSON.stringify(fields)).digest("hex");
}

function readLink(url: URL, clock: Clock): Outcome<LinkedFile> {
  const field = (name: string) => url.searchParams.get(name) ?? "";
  const key = url.pathname.startsWith(LINK_PATH) ? url.pathname.slice(LINK_PATH.length) : "";
  const [fileName, mediaType, expires] = [field("name"), field("type"), field("expires")];
  if (field("signature") !== sign([key, fileName, mediaType, expires])) return refuse("ACCESS_DENIED", "not our link");
  if (clock() >= Number(expires)) return refuse("ARTIFACT_EXPIRED", "the link has expired");
  return succeed({ key, fileName, mediaType });
}
