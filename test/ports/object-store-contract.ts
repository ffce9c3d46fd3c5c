import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Clock, LinkRequest, ObjectStore } from "../../functions/contract/ports.ts";
import "../kit/to-fail.ts";

/** What every object store must do. One suite, run against each: the tests' own, the embedded one, and S3's kin. */

export type OpenedStore = {
  readonly store: ObjectStore;
  /** A second handle on the same objects, as another process would have it. */
  readonly peer: ObjectStore;
  /** The clock that the links' signer and, where it can be moved, their verifier go by. */
  readonly now: Clock;
  advance(ms: number): void;
  close(): Promise<void>;
};

/** `headers` in lower case. */
export type Download = {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly bytes: Uint8Array;
};

export type ObjectStoreSubject = {
  open(): Promise<OpenedStore>;
  download(url: string): Promise<Download>;
  /** True when the download is answered by our own code, which then forbids content sniffing. */
  readonly servedByUs?: boolean;
  /**
   * Title of a claim -> why it does not hold here. Such a claim is run and must fail, so that none outlives its reason.
   */
  readonly exceptions?: Readonly<Record<string, string>>;
  /** Title of a claim -> why it holds here or not by chance. Such a claim is left out by name. */
  readonly chancy?: Readonly<Record<string, string>>;
};

const MEBI = 1024 * 1024;
const ROOMY = { maxBytes: 8 * MEBI };
const TEXT = "text/plain";
const PDF: LinkRequest = { fileName: "Minutes.pdf", mediaType: "application/pdf", seconds: 60 };

/** Over HTTP, which is how a person gets the file. */
export async function downloadByHttp(url: string): Promise<Download> {
  const response = await fetch(url, { redirect: "manual" });
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, headers: new Map(response.headers), bytes };
}

export function describeObjectStore(name: string, subject: ObjectStoreSubject): void {
  const { exceptions = {}, chancy = {}, download } = subject;
  const claimed = new Set<string>();

  describe(`${name} as an object store`, () => {
    let opened: OpenedStore;
    beforeAll(async () => {
      opened = await subject.open();
    });
    afterAll(() => opened?.close());

    /** Each claim works below a prefix of its own, so that a bucket of real life may hold other things. */
    function claim(title: string, prove: (the: OpenedStore & { readonly at: string }) => Promise<void>): void {
      claimed.add(title);
      const reason = exceptions[title];
      const chance = chancy[title];
      const at = `contract/${randomUUID()}/`;
      const run = () => prove({ ...opened, at });
      if (chance !== undefined) test.skip(`left out here, because ${chance}: ${title}`, run);
      else if (reason === undefined) test(title, run);
      else test.fails(`does not hold here, because ${reason}: ${title}`, run);
    }

    describeReadsAndWrites(claim);
    describeConditionalReads(claim);
    describeConditions(claim);
    describeConcurrency(claim);
    describeListing(claim);
    describeLinks(claim, download, subject.servedByUs ?? false);

    test("every declared exception names a claim", () => {
      expect([...Object.keys(exceptions), ...Object.keys(chancy)].filter((title) => !claimed.has(title))).toEqual([]);
    });
  });
}

type Claim = (title: string, prove: (the: OpenedStore & { readonly at: string }) => Promise<void>) => void;

function describeReadsAndWrites(claim: Claim): void {
  claim("a read after a write sees the write, from any handle", async ({ store, peer, at }) => {
    await store.put({ key: `${at}a`, bytes: bytesOf("one"), mediaType: TEXT });
    expect(await textAt(store, `${at}a`)).toBe("one");
    expect(await textAt(peer, `${at}a`)).toBe("one");
  });

  claim("a second write replaces bytes, media type and etag", async ({ store, peer, at }) => {
    const first = await store.put({ key: `${at}a`, bytes: bytesOf("one"), mediaType: TEXT });
    const second = await peer.put({ key: `${at}a`, bytes: bytesOf("two, longer"), mediaType: "text/csv" });
    const found = await store.get(`${at}a`, ROOMY);
    expect(found).toMatchObject({ mediaType: "text/csv", etag: second.stored && second.etag });
    expect(Buffer.from(found?.bytes ?? []).toString()).toBe("two, longer");
    expect(first).not.toEqual(second);
  });

  claim("the etag of a write is the one that a read tells", async ({ store, at }) => {
    const put = await store.put({ key: `${at}a`, bytes: bytesOf("one"), mediaType: TEXT });
    expect(put).toEqual({ stored: true, etag: (await store.get(`${at}a`, ROOMY))?.etag });
  });

  claim("nothing is found at a key that was never written", async ({ store, at }) => {
    expect(await store.get(`${at}nothing`, ROOMY)).toBeUndefined();
  });

  claim("bytes of every kind come back as they were", async ({ store, at }) => {
    const samples = [
      new Uint8Array(),
      Uint8Array.from({ length: 256 }, (_, index) => index),
      bytesOf("\u0000\r\n\ufeff\ud83d\ude80 <xml/>"),
      pseudoRandomBytes(4 * MEBI),
    ];
    for (const [index, bytes] of samples.entries()) {
      const key = `${at}sample-${index}`;
      await store.put({ key, bytes, mediaType: "application/octet-stream" });
      const found = await store.get(key, ROOMY);
      expect(Buffer.compare(found?.bytes ?? bytesOf("none"), bytes)).toBe(0);
    }
  });

  claim("a view into a larger buffer stores only what it shows", async ({ store, at }) => {
    await store.put({ key: `${at}a`, bytes: bytesOf("xxhelloxx").subarray(2, 7), mediaType: TEXT });
    expect(await textAt(store, `${at}a`)).toBe("hello");
  });

  claim("what is stored does not change with the caller's buffers", async ({ store, at }) => {
    const bytes = bytesOf("one");
    await store.put({ key: `${at}a`, bytes, mediaType: TEXT });
    bytes.fill(0);
    (await store.get(`${at}a`, ROOMY))?.bytes.fill(0);
    expect(await textAt(store, `${at}a`)).toBe("one");
  });

  claim("the media type is kept as written", async ({ store, at }) => {
    for (const mediaType of ["application/pdf", "text/calendar; charset=utf-8"]) {
      await store.put({ key: `${at}a`, bytes: bytesOf("x"), mediaType });
      expect((await store.get(`${at}a`, ROOMY))?.mediaType).toBe(mediaType);
    }
  });

  claim("an object of exactly the limit is read, one byte more is refused", async ({ store, at }) => {
    await store.put({ key: `${at}a`, bytes: bytesOf("12345"), mediaType: TEXT });
    await store.put({ key: `${at}empty`, bytes: new Uint8Array(), mediaType: TEXT });
    expect((await store.get(`${at}a`, { maxBytes: 5 }))?.bytes).toHaveLength(5);
    expect((await store.get(`${at}empty`, { maxBytes: 0 }))?.bytes).toHaveLength(0);
    await expect(store.get(`${at}a`, { maxBytes: 4 })).rejects.toFail("DEFECT");
  });

  claim("a deleted object is gone, and deleting what is not there succeeds", async ({ store, peer, at }) => {
    await store.put({ key: `${at}a`, bytes: bytesOf("one"), mediaType: TEXT });
    await peer.delete(`${at}a`);
    expect(await store.get(`${at}a`, ROOMY)).toBeUndefined();
    await store.delete(`${at}a`);
    await store.delete(`${at}never`);
  });
}

function describeConditionalReads(claim: Claim): void {
  claim(
    "a read unless a version is there says unchanged of that version, from any handle",
    async ({ store, peer, at }) => {
      const etag = await putText(store, `${at}a`, "one");
      expect(await store.getUnless(etag, `${at}a`, ROOMY)).toBe("unchanged");
      expect(await peer.getUnless(etag, `${at}a`, ROOMY)).toBe("unchanged");
    },
  );

  claim("a read unless a version is there gives any other version whole", async ({ store, peer, at }) => {
    const etag = await putText(store, `${at}a`, "one");
    const newer = await putText(peer, `${at}a`, "two");
    const found = await store.getUnless(etag, `${at}a`, ROOMY);
    expect(found).toMatchObject({ etag: newer, mediaType: TEXT });
    expect(found).toEqual(await store.get(`${at}a`, ROOMY));
  });

  claim("a read unless a version is there finds nothing where nothing is", async ({ store, at }) => {
    const etag = await putText(store, `${at}a`, "one");
    await store.delete(`${at}a`);
    expect(await store.getUnless(etag, `${at}a`, ROOMY)).toBeUndefined();
    expect(await store.getUnless(etag, `${at}never`, ROOMY)).toBeUndefined();
  });

  claim(
    "a read unless a version is there keeps the limit, which an unchanged object cannot pass",
    async ({ store, at }) => {
      const etag = await putText(store, `${at}a`, "12345");
      expect(await store.getUnless(etag, `${at}a`, { maxBytes: 4 })).toBe("unchanged");
      expect(await store.getUnless('"other"', `${at}a`, { maxBytes: 5 })).toMatchObject({ etag });
      await expect(store.getUnless('"other"', `${at}a`, { maxBytes: 4 })).rejects.toFail("DEFECT");
    },
  );
}

function describeConditions(claim: Claim): void {
  claim("absent stores where nothing is", async ({ store, at }) => {
    const put = await store.put({ key: `${at}a`, bytes: bytesOf("one"), mediaType: TEXT, condition: ABSENT });
    expect(put.stored).toBe(true);
    expect(await textAt(store, `${at}a`)).toBe("one");
  });

  claim("absent does not store over what is there, not even the same bytes", async ({ store, peer, at }) => {
    await store.put({ key: `${at}a`, bytes: bytesOf("one"), mediaType: TEXT });
    for (const text of ["two", "one"]) {
      const put = await peer.put({ key: `${at}a`, bytes: bytesOf(text), mediaType: TEXT, condition: ABSENT });
      expect(put).toEqual({ stored: false });
    }
    expect(await textAt(store, `${at}a`)).toBe("one");
  });

  claim("absent stores anew where an object was deleted", async ({ store, at }) => {
    await store.put({ key: `${at}a`, bytes: bytesOf("one"), mediaType: TEXT });
    await store.delete(`${at}a`);
    const put = await store.put({ key: `${at}a`, bytes: bytesOf("two"), mediaType: TEXT, condition: ABSENT });
    expect(put.stored).toBe(true);
    expect(await textAt(store, `${at}a`)).toBe("two");
  });

  claim("match stores over the version that it names", async ({ store, peer, at }) => {
    const etag = await putText(store, `${at}a`, "one");
    const put = await peer.put({ key: `${at}a`, bytes: bytesOf("two"), mediaType: TEXT, condition: matching(etag) });
    expect(put.stored).toBe(true);
    expect(await textAt(store, `${at}a`)).toBe("two");
  });

  claim("match does not store over another version", async ({ store, peer, at }) => {
    const etag = await putText(store, `${at}a`, "one");
    await putText(peer, `${at}a`, "two");
    const put = await store.put({ key: `${at}a`, bytes: bytesOf("three"), mediaType: TEXT, condition: matching(etag) });
    expect(put).toEqual({ stored: false });
    expect(await textAt(store, `${at}a`)).toBe("two");
  });

  claim("match does not store where nothing is", async ({ store, at }) => {
    const etag = await putText(store, `${at}a`, "one");
    await store.delete(`${at}a`);
    for (const key of [`${at}a`, `${at}never`]) {
      const put = await store.put({ key, bytes: bytesOf("two"), mediaType: TEXT, condition: matching(etag) });
      expect(put).toEqual({ stored: false });
      expect(await store.get(key, ROOMY)).toBeUndefined();
    }
  });
}

function describeConcurrency(claim: Claim): void {
  claim("of many writers that want an absent key, exactly one stores", async ({ store, peer, at }) => {
    const texts = Array.from({ length: 16 }, (_, index) => `writer ${index}`);
    const puts = await Promise.all(
      texts.map((text, index) => {
        const writer = index % 2 === 0 ? store : peer;
        return writer.put({ key: `${at}a`, bytes: bytesOf(text), mediaType: TEXT, condition: ABSENT });
      }),
    );
    const winners = texts.filter((_, index) => puts[index]?.stored);
    expect(winners).toEqual([await textAt(store, `${at}a`)]);
  });

  claim("compare-and-swap by many writers loses no increment", async ({ store, peer, at }) => {
    await putText(store, `${at}counter`, "0");
    const writers = Array.from({ length: 6 }, async (_, index) => {
      const writer = index % 2 === 0 ? store : peer;
      for (let done = 0; done < 3; done += 1) await increment(writer, `${at}counter`);
    });
    await Promise.all(writers);
    expect(await textAt(store, `${at}counter`)).toBe("18");
  });

  claim("a reader beside writers sees one whole version", async ({ store, peer, at }) => {
    const versions = ["a", "b", "c", "d"].map((letter) => letter.repeat(100_000));
    await putText(store, `${at}a`, versions[0] ?? "");
    const writing = versions.map((text) => putText(peer, `${at}a`, text));
    const reading = Array.from({ length: 8 }, () => textAt(store, `${at}a`));
    await Promise.all(writing);
    for (const text of await Promise.all(reading)) expect(versions).toContain(text);
  });
}

function describeListing(claim: Claim): void {
  const SORTED = ["A", "a", "a-b", "a.b", "a/b", "a/b/c", "a0", "aB", "a_b", "ab", "abc", "axb", "b"];

  claim("keys are listed in ascending byte order, whatever the order of writing", async ({ store, at }) => {
    await putAll(store, at, [...SORTED].reverse());
    expect(await store.list(at, { limit: 100 })).toEqual({ keys: SORTED.map((key) => at + key), next: undefined });
  });

  claim("a prefix need not end at a path boundary, and no character in it is special", async ({ store, at }) => {
    await putAll(store, at, SORTED);
    const matching = async (prefix: string) => (await store.list(at + prefix, { limit: 100 })).keys;
    for (const prefix of ["a", "a_", "a.", "A", "a/b", "abc", "ab"]) {
      expect(await matching(prefix)).toEqual(SORTED.filter((key) => key.startsWith(prefix)).map((key) => at + key));
    }
  });

  claim("pages hold every key once, and the last one says that it is the last", async ({ store, at }) => {
    await putAll(store, at, SORTED);
    for (const limit of [1, 5, SORTED.length - 1, SORTED.length, SORTED.length + 1]) {
      const keys: string[] = [];
      let pages = 0;
      let after: string | undefined;
      do {
        const page = await store.list(at, { limit, after });
        expect(page.keys.length).toBeLessThanOrEqual(limit);
        keys.push(...page.keys);
        after = page.next;
        pages += 1;
      } while (after !== undefined && pages <= SORTED.length);
      expect(keys).toEqual(SORTED.map((key) => at + key));
      expect(pages).toBe(Math.ceil(SORTED.length / limit));
    }
  });

  claim("listing goes on after a key, whether or not it is there", async ({ store, at }) => {
    await putAll(store, at, ["b", "d", "f"]);
    const after = async (key: string) => (await store.list(at, { limit: 9, after: at + key })).keys;
    expect(await after("b")).toEqual([`${at}d`, `${at}f`]);
    expect(await after("c")).toEqual([`${at}d`, `${at}f`]);
    expect(await after("")).toEqual([`${at}b`, `${at}d`, `${at}f`]);
    expect(await store.list(at, { limit: 9, after: `${at}f` })).toEqual({ keys: [], next: undefined });
  });

  claim("a prefix that no key has is an empty page", async ({ store, at }) => {
    expect(await store.list(at, { limit: 9 })).toEqual({ keys: [], next: undefined });
  });

  claim("deleted keys are not listed", async ({ store, at }) => {
    await putAll(store, at, ["a", "b"]);
    await store.delete(`${at}a`);
    expect((await store.list(at, { limit: 9 })).keys).toEqual([`${at}b`]);
  });
}

const NAMES = ["Minutes.pdf", "Протокол 议事录.pdf", 'a "quoted" name.pdf', "50% (of) it's; *all*.pdf", "été.pdf"];

function describeLinks(claim: Claim, download: ObjectStoreSubject["download"], servedByUs: boolean): void {
  claim("a link gives the bytes", async ({ store, at }) => {
    const bytes = pseudoRandomBytes(100_000);
    await store.put({ key: `${at}a.pdf`, bytes, mediaType: TEXT });
    const got = await download((await store.presign(`${at}a.pdf`, PDF)).url);
    expect(got.status).toBe(200);
    expect(Buffer.compare(got.bytes, bytes)).toBe(0);
  });

  claim("a link gives the name and type that it was made with, as an attachment", async ({ store, at }) => {
    await putText(store, `${at}a.pdf`, "x");
    for (const fileName of NAMES) {
      const { headers } = await download((await store.presign(`${at}a.pdf`, { ...PDF, fileName })).url);
      expect(headers.get("content-type")).toBe("application/pdf");
      expect(headers.get("content-disposition")).toMatch(/^attachment; filename="[\x20-\x21\x23-\x7e]+"; filename\*=/);
      expect(extendedName(headers.get("content-disposition"))).toBe(fileName);
    }
  });

  if (servedByUs) {
    claim("a download forbids guessing another type", async ({ store, at }) => {
      await putText(store, `${at}a.pdf`, "<script>");
      const { headers } = await download((await store.presign(`${at}a.pdf`, PDF)).url);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    });
  }

  claim("a link tells its end in whole seconds, at most as late as asked", async ({ store, now, at }) => {
    for (const seconds of [1, 59, 900]) {
      const before = now();
      const { expiresAt } = await store.presign(`${at}a`, { ...PDF, seconds });
      expect(expiresAt % 1000).toBe(0);
      expect(expiresAt).toBeLessThanOrEqual(now() + seconds * 1000);
      expect(expiresAt).toBeGreaterThan(before + (seconds - 1) * 1000);
    }
  });

  claim("a link holds until the millisecond that it tells, and not at it", async ({ store, now, advance, at }) => {
    await putText(store, `${at}a`, "x");
    const { url, expiresAt } = await store.presign(`${at}a`, PDF);
    advance(expiresAt - 1 - now());
    expect((await download(url)).status).toBe(200);
    advance(1);
    expect(isRefusal(await download(url))).toBe(true);
  });

  claim("a link lives for seven days at the most", async ({ store, now, at }) => {
    const { expiresAt } = await store.presign(`${at}a`, { ...PDF, seconds: 30 * 24 * 3600 });
    expect(expiresAt - now()).toBeLessThanOrEqual(7 * 24 * 3600 * 1000);
    expect(expiresAt - now()).toBeGreaterThan(6 * 24 * 3600 * 1000);
  });

  claim("a link that was changed in any part gives nothing", async ({ store, at }) => {
    await putText(store, `${at}a`, "mine");
    await putText(store, `${at}b`, "another's");
    const { url } = await store.presign(`${at}a`, PDF);
    const changed = changesOf(url, `${at}a`, `${at}b`);
    expect(changed.length).toBeGreaterThan(4);
    for (const attempt of changed) expect([attempt, isRefusal(await download(attempt))]).toEqual([attempt, true]);
  });

  claim("a link to nothing can be made and gives nothing", async ({ store, at }) => {
    const { url } = await store.presign(`${at}never`, PDF);
    expect(NOTHING).toContain((await download(url)).status);
  });

  claim("a link gives nothing once the object is deleted", async ({ store, at }) => {
    await putText(store, `${at}a`, "x");
    const { url } = await store.presign(`${at}a`, PDF);
    await store.delete(`${at}a`);
    expect(NOTHING).toContain((await download(url)).status);
  });

  claim("a link of one handle is good at another", async ({ peer, store, at }) => {
    await putText(store, `${at}a`, "x");
    expect((await download((await peer.presign(`${at}a`, PDF)).url)).status).toBe(200);
  });
}

/** S3 says 403 instead of 404 to a signer that may not list the bucket. */
const NOTHING = [403, 404];

/**
 * The url with another key, and with each query parameter left out and altered. Spliced as text: parsing and writing
 * a query again changes its escapes, and that alone would already spoil the signature.
 */
function changesOf(url: string, key: string, otherKey: string): string[] {
  const [path = "", query = ""] = url.split("?");
  const pairs = query.split("&");
  const replaceAt = (index: number, ...instead: string[]) =>
    `${path}?${pairs.toSpliced(index, 1, ...instead).join("&")}`;
  const changed = pairs.flatMap((pair, index) => {
    const [name = "", value = ""] = pair.split("=");
    const altered = /^\d+$/.test(value) ? String(Number(value) + 1) : flipLast(value);
    return [replaceAt(index), replaceAt(index, `${name}=${altered}`)];
  });
  return [url.replace(key, otherKey), ...changed];
}

function flipLast(text: string): string {
  return text.slice(0, -1) + (text.endsWith("0") ? "1" : "0");
}

function isRefusal({ status, bytes }: Download): boolean {
  return [400, 403, 410].includes(status) && !Buffer.from(bytes).toString().includes("mine");
}

function extendedName(header: string | undefined): string | undefined {
  const encoded = /filename\*=UTF-8''([A-Za-z0-9!#$&+.^_`|~%-]+)$/.exec(header ?? "")?.[1];
  return encoded === undefined ? undefined : decodeURIComponent(encoded);
}

const ABSENT = { type: "absent" } as const;

function matching(etag: string) {
  return { type: "match", etag } as const;
}

async function increment(store: ObjectStore, key: string): Promise<void> {
  for (;;) {
    const found = await store.get(key, ROOMY);
    if (found === undefined) throw new Error("the counter is gone");
    const bytes = bytesOf(String(Number(Buffer.from(found.bytes).toString()) + 1));
    const put = await store.put({ key, bytes, mediaType: TEXT, condition: matching(found.etag) });
    if (put.stored) return;
  }
}

async function putAll(store: ObjectStore, at: string, keys: readonly string[]): Promise<void> {
  for (const key of keys) await putText(store, at + key, key);
}

async function putText(store: ObjectStore, key: string, text: string): Promise<string> {
  const put = await store.put({ key, bytes: bytesOf(text), mediaType: TEXT });
  if (!put.stored) throw new Error("an unconditional put was not stored");
  return put.etag;
}

async function textAt(store: ObjectStore, key: string): Promise<string | undefined> {
  const found = await store.get(key, ROOMY);
  return found === undefined ? undefined : Buffer.from(found.bytes).toString();
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text);
}

/** The same at every run, and hard to compress. */
function pseudoRandomBytes(count: number): Uint8Array {
  const blocks = Array.from({ length: Math.ceil(count / 64) }, (_, index) =>
    createHash("sha512").update(`block ${index}`).digest(),
  );
  return Buffer.concat(blocks).subarray(0, count);
}
