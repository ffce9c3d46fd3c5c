import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LifecycleRule } from "../../functions/contract/store-layout.ts";
import { type EmbeddedObjectStore, openEmbeddedObjectStore } from "../../local/embedded-object-store.ts";
import { createManualClock } from "../kit/manual-clock.ts";
import "../kit/to-fail.ts";

const LINK = { fileName: "Minutes.pdf", mediaType: "application/pdf", seconds: 60 };
/** It has no such modes. */
const WINDOWS = process.platform === "win32";
const HOUR_MS = 3_600_000;

let parent: string;
let directory: string;
let clock: ReturnType<typeof createManualClock>;
const opened: EmbeddedObjectStore[] = [];

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "skillbroker-embedded-"));
  directory = join(parent, "data");
  // Orphans are told by the file system's time, so the clock starts from the real one.
  clock = createManualClock(Date.now());
});
afterEach(() => {
  for (const store of opened.splice(0)) store.close();
  rmSync(parent, { recursive: true });
});

function open(lifecycle: readonly LifecycleRule[] = []): EmbeddedObjectStore {
  const baseUrl = () => "http://127.0.0.1:8787";
  const store = openEmbeddedObjectStore({ directory, clock: clock.now, baseUrl, lifecycle });
  opened.push(store);
  return store;
}

function contents(): string[] {
  return readdirSync(join(directory, "objects"));
}

/** Path of the only content. */
function onlyContent(): string {
  const [file = "", ...others] = contents();
  expect(others).toEqual([]);
  return join(directory, "objects", file);
}

function putText(store: EmbeddedObjectStore, key: string, text: string) {
  return store.put({ key, bytes: Buffer.from(text), mediaType: "text/plain" });
}

async function textAt(store: EmbeddedObjectStore, key: string): Promise<string | undefined> {
  const found = await store.get(key, { maxBytes: 1000 });
  return found === undefined ? undefined : Buffer.from(found.bytes).toString();
}

describe("the disk", () => {
  test("holds one file for each object, whatever was replaced, deleted or refused", async () => {
    const store = open();
    await putText(store, "a", "one");
    await putText(store, "a", "two");
    await putText(store, "b", "three");
    await store.put({ key: "a", bytes: Buffer.from("x"), mediaType: "text/plain", condition: { type: "absent" } });
    await store.delete("b");
    expect(readFileSync(onlyContent(), "utf8")).toBe("two");
  });

  test("keeps objects over a restart", async () => {
    const first = open();
    const put = await putText(first, "a", "one");
    expect(await open().get("a", { maxBytes: 9 })).toMatchObject({
      mediaType: "text/plain",
      etag: put.stored && put.etag,
    });
  });

  test.skipIf(WINDOWS)("is for the owner alone", async () => {
    await putText(open(), "a", "one");
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(statSync(onlyContent()).mode & 0o777).toBe(0o600);
  });

  test("whose content was removed by hand is a defect that tells the key and no path", async () => {
    const store = open();
    await putText(store, "a/b", "one");
    rmSync(onlyContent());
    const failed = store.get("a/b", { maxBytes: 9 });
    await expect(failed).rejects.toFail("DEFECT");
    await expect(failed).rejects.toThrow("a/b");
    await expect(failed).rejects.not.toThrow(directory);
  });

  test("whose content was cut or overwritten by hand is a defect", async () => {
    const store = open();
    await putText(store, "a", "one");
    writeFileSync(onlyContent(), "two");
    await expect(store.get("a", { maxBytes: 9 })).rejects.toFail("DEFECT");
    truncateSync(onlyContent(), 1);
    await expect(store.get("a", { maxBytes: 9 })).rejects.toFail("DEFECT");
  });

  test("can be written and deleted where the content was removed by hand", async () => {
    const store = open();
    await putText(store, "a", "one");
    rmSync(onlyContent());
    await putText(store, "a", "two");
    expect(await textAt(store, "a")).toBe("two");
    rmSync(onlyContent());
    await store.delete("a");
    expect(await store.get("a", { maxBytes: 9 })).toBeUndefined();
  });

  test("keeps the new content when the old one cannot be removed", async () => {
    const store = open();
    await putText(store, "a", "one");
    const old = onlyContent();
    rmSync(old);
    // Not even the administrator can unlink a directory.
    mkdirSync(old);
    expect(await putText(store, "a", "two")).toMatchObject({ stored: true });
    expect(await textAt(store, "a")).toBe("two");
  });
});

describe("what has a lifecycle", () => {
  const DAY_MS = 24 * HOUR_MS;
  const RULES = [{ prefix: "artifacts/", days: 7 }];
  const keysOf = async (store: EmbeddedObjectStore) => (await store.list("", { limit: 10 })).keys;

  test("is gone at the start after its days, content included, and not a millisecond sooner", async () => {
    await putText(open(RULES), "artifacts/a", "old");
    clock.advance(7 * DAY_MS - 1);
    expect(await keysOf(open(RULES))).toEqual(["artifacts/a"]);
    clock.advance(1);
    expect(await keysOf(open(RULES))).toEqual([]);
    expect(contents()).toEqual([]);
  });

  test("is gone from a store that stays open, at a later write", async () => {
    const store = open(RULES);
    await putText(store, "artifacts/a", "old");
    clock.advance(7 * DAY_MS);
    await putText(store, "artifacts/b", "new");
    expect(await keysOf(store)).toEqual(["artifacts/b"]);
  });

  test("counts from the last time it was written", async () => {
    const store = open(RULES);
    await putText(store, "artifacts/a", "first");
    clock.advance(6 * DAY_MS);
    await putText(store, "artifacts/a", "second");
    clock.advance(6 * DAY_MS);
    expect(await keysOf(open(RULES))).toEqual(["artifacts/a"]);
  });

  test("leaves everything else, whatever its age", async () => {
    await putText(open(RULES), "jobs/a", "record");
    clock.advance(1_000 * DAY_MS);
    expect(await keysOf(open(RULES))).toEqual(["jobs/a"]);
  });
});

describe("orphans", () => {
  test("are swept at a start once they are older than an hour", async () => {
    await putText(open(), "a", "one");
    const orphan = join(directory, "objects", "00112233445566778899aabbccddeeff");
    writeFileSync(orphan, "of a write that was killed");
    open();
    expect(contents()).toHaveLength(2);
    const old = (clock.now() - HOUR_MS) / 1000 - 1;
    utimesSync(orphan, old, old);
    expect(await textAt(open(), "a")).toBe("one");
    expect(readFileSync(onlyContent(), "utf8")).toBe("one");
  });

  test("are no contents, however old those are", async () => {
    await putText(open(), "a", "one");
    clock.advance(1000 * HOUR_MS);
    expect(await textAt(open(), "a")).toBe("one");
  });
});

describe("a key that tries to leave the directory", () => {
  test.each(["../../escape", "/etc/escape", "..", "a/../../../escape", "objects/../../escape", "c:\\escape"])(
    "%s stays a name",
    async (key) => {
      const store = open();
      const before = readdirSync(parent);
      await putText(store, key, "one");
      expect(await textAt(store, key)).toBe("one");
      expect((await store.list("", { limit: 9 })).keys).toEqual([key]);
      await store.delete(key);
      expect([await textAt(store, key), contents(), readdirSync(parent)]).toEqual([undefined, [], before]);
    },
  );
});

describe("the link secret", () => {
  const path = () => join(directory, "link-secret");

  test.skipIf(WINDOWS)("is for the owner alone", () => {
    open();
    expect(statSync(path()).mode & 0o777).toBe(0o600);
  });

  test("is 32 bytes, and the same after a restart", () => {
    open();
    const secret = readFileSync(path());
    expect(secret).toHaveLength(32);
    open();
    expect(readFileSync(path())).toEqual(secret);
  });

  test("is another for each store", () => {
    open();
    const secret = readFileSync(path());
    directory = join(parent, "another");
    open();
    expect(readFileSync(path())).not.toEqual(secret);
  });

  test("lets a link live over a restart", async () => {
    const { url } = await open().presign("a", LINK);
    expect(open().readLink(new URL(url))).toEqual({ ok: true, value: { key: "a", ...withoutSeconds(LINK) } });
  });

  test("is made whole where a start was killed while it was being written", () => {
    mkdirSync(directory);
    writeFileSync(`${path()}.new`, "half");
    open();
    expect(readFileSync(path())).toHaveLength(32);
  });

  test("that was damaged refuses to open the store", () => {
    open();
    writeFileSync(path(), "short");
    expect(open).toFail("DEFECT");
  });
});

describe("a link", () => {
  test("is refused with one code when it was changed and with another when it is over", async () => {
    const store = open();
    const url = new URL((await store.presign("a", LINK)).url);
    clock.advance(60_000);
    expect(store.readLink(url)).toFail("ARTIFACT_EXPIRED");
    url.searchParams.set("expires", String(Number(url.searchParams.get("expires")) + 60));
    expect(store.readLink(url)).toFail("ACCESS_DENIED");
  });

  test("does not let one field lend characters to the next", async () => {
    const store = open();
    const url = new URL((await store.presign("ab", { ...LINK, fileName: "c.pdf" })).url);
    url.pathname = "/files/a";
    url.searchParams.set("name", "bc.pdf");
    expect(store.readLink(url)).toFail("ACCESS_DENIED");
  });

  test.each(["http://127.0.0.1/files/a", "http://127.0.0.1/filez/a", "http://127.0.0.1/", "http://127.0.0.1/files/"])(
    "that nobody signed is refused: %s",
    (url) => {
      expect(open().readLink(new URL(url))).toFail("ACCESS_DENIED");
    },
  );

  test("is good on its own path only", async () => {
    const store = open();
    const url = new URL((await store.presign("a", LINK)).url);
    url.pathname = "/elses/a";
    expect(store.readLink(url)).toFail("ACCESS_DENIED");
  });
});

function withoutSeconds({ fileName, mediaType }: typeof LINK) {
  return { fileName, mediaType };
}
