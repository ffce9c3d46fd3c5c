import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CreateBucketCommand } from "@aws-sdk/client-s3";
import { buildApp } from "fauxqs";
import { describe, test } from "vitest";
import { createS3Client, createS3ObjectStore } from "../../functions/aws/s3-object-store.ts";
import { toContentDisposition } from "../../functions/contract/file-name.ts";
import type { Clock } from "../../functions/contract/ports.ts";
import { openEmbeddedObjectStore } from "../../local/embedded-object-store.ts";
import { readProject } from "../../local/project.ts";
import { startLocalServer } from "../../local/server.ts";
import { realTimer } from "../../local/timer.ts";
import { createManualClock } from "../kit/manual-clock.ts";
import { createMemoryObjectStore, type MemoryObjectStore } from "../kit/memory-object-store.ts";
import { findMoto, startMoto } from "../kit/moto.ts";
import { createTestS3Client, TEST_BUCKET, TEST_CREDENTIALS } from "../kit/s3-client.ts";
import { startS3Server } from "../kit/s3-server.ts";
import { type Download, describeObjectStore, downloadByHttp, type OpenedStore } from "./object-store-contract.ts";

const PROJECT_ROOT = join(import.meta.dirname, "..", "..");
/** Not on a full second, so that rounding shows. */
const START = Date.UTC(2027, 0, 31, 23, 59, 30, 750);

let memory: MemoryObjectStore;

describeObjectStore("the tests' own store in memory", {
  open: async () => {
    const clock = createManualClock(START);
    memory = createMemoryObjectStore({ clock: clock.now });
    return { store: memory, peer: memory, ...clock, close: async () => undefined };
  },
  download: (url) => downloadFromMemory(url),
});

async function downloadFromMemory(url: string): Promise<Download> {
  const link = memory.readLink(url);
  if (!link.ok) return { status: link.fault.status, headers: new Map(), bytes: new Uint8Array() };
  const found = await memory.get(link.value.key, { maxBytes: Number.MAX_SAFE_INTEGER });
  if (found === undefined) return { status: 404, headers: new Map(), bytes: new Uint8Array() };
  const { fileName, mediaType } = link.value;
  const headers = new Map([
    ["content-type", mediaType],
    ["content-disposition", toContentDisposition(fileName)],
  ]);
  return { status: 200, headers, bytes: found.bytes };
}

describeObjectStore("the embedded store, its links through the local server", {
  open: openEmbedded,
  download: downloadByHttp,
  servedByUs: true,
});

/** Three handles on one directory: the server's, and two as command lines beside it would have them. */
async function openEmbedded(): Promise<OpenedStore> {
  const dataDirectory = mkdtempSync(join(tmpdir(), "skillbroker-store-"));
  // Orphans are told by the file system's time, so this clock starts from the real one.
  const clock = createManualClock(Math.floor(Date.now() / 1000) * 1000 + 750);
  const project = readProject(PROJECT_ROOT);
  const server = await startLocalServer({
    project,
    dataDirectory,
    port: 0,
    clock: clock.now,
    timer: realTimer,
    env: {},
    background: "none",
    log: () => undefined,
  });
  const open = () => openEmbeddedObjectStore({ directory: dataDirectory, clock: clock.now, baseUrl: () => server.url });
  const [store, peer] = [open(), open()];
  const close = async () => {
    store.close();
    peer.close();
    await server.close();
    rmSync(dataDirectory, { recursive: true });
  };
  return { store, peer, ...clock, close };
}

describeObjectStore("S3, over a server that is strict where emulators are lax", {
  open: async () => {
    const clock = createManualClock(START);
    const server = await startS3Server({ credentials: TEST_CREDENTIALS, bucket: TEST_BUCKET, clock: clock.now });
    return { ...openS3(server.url, clock.now), ...clock, close: server.close };
  },
  download: downloadByHttp,
});

const UNCONDITIONAL = "fauxqs 2.4 ignores the conditions of a write";
const UNVERIFIED = "fauxqs 2.4 takes every link for good";
const BY_LOCALE = "fauxqs 2.4 sorts keys by locale";
const NO_OVERRIDES = "fauxqs 2.4 ignores the overrides of a link";

describeObjectStore("S3, over fauxqs", {
  open: async () => {
    const clock = createManualClock(Date.now());
    const app = buildApp({ logger: false });
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    await createTestS3Client(url).send(new CreateBucketCommand({ Bucket: TEST_BUCKET }));
    return { ...openS3(url, clock.now), ...clock, close: async () => app.close() };
  },
  download: downloadByHttp,
  exceptions: {
    "absent does not store over what is there, not even the same bytes": UNCONDITIONAL,
    "match does not store over another version": UNCONDITIONAL,
    "match does not store where nothing is": UNCONDITIONAL,
    "of many writers that want an absent key, exactly one stores": UNCONDITIONAL,
    "compare-and-swap by many writers loses no increment": UNCONDITIONAL,
    "keys are listed in ascending byte order, whatever the order of writing": BY_LOCALE,
    "a prefix need not end at a path boundary, and no character in it is special": BY_LOCALE,
    "pages hold every key once, and the last one says that it is the last": BY_LOCALE,
    "a link gives the name and type that it was made with, as an attachment": NO_OVERRIDES,
    "a link holds until the millisecond that it tells, and not at it": UNVERIFIED,
    "a link that was changed in any part gives nothing": UNVERIFIED,
  },
});

function openS3(url: string, clock: Clock): Pick<OpenedStore, "store" | "peer"> {
  const open = () => createS3ObjectStore({ client: createTestS3Client(url), bucket: TEST_BUCKET, clock });
  return { store: open(), peer: open() };
}

const UNLOCKED = "moto 5.2 looks at the condition and stores in two steps, and other threads come between";
const moto = findMoto();

if (moto === undefined) {
  describe("S3, over moto, as an object store", () => {
    test.skip("left out: no python3 with moto[server] on this machine", () => undefined);
  });
} else {
  describeObjectStore("S3, over moto", {
    open: async () => {
      const clock = createManualClock(Date.now());
      const server = await startMoto(moto);
      await createTestS3Client(server.url).send(
        new CreateBucketCommand({
          Bucket: TEST_BUCKET,
          CreateBucketConfiguration: { LocationConstraint: "eu-central-1" },
        }),
      );
      return { ...openS3(server.url, clock.now), ...clock, close: server.close };
    },
    download: downloadByHttp,
    exceptions: {
      "a link gives the name and type that it was made with, as an attachment": "moto 5.2 ignores the overrides",
      "a link holds until the millisecond that it tells, and not at it": "moto 5.2 lets no link expire",
      "a link that was changed in any part gives nothing": "moto 5.2 verifies no signature",
    },
    chancy: {
      "of many writers that want an absent key, exactly one stores": UNLOCKED,
      "compare-and-swap by many writers loses no increment": UNLOCKED,
    },
  });
}

const bucket = process.env.SKILLBROKER_TEST_BUCKET;

if (bucket === undefined) {
  describe("S3 itself, as an object store", () => {
    test.skip("left out: SKILLBROKER_TEST_BUCKET names no bucket", () => undefined);
  });
} else {
  describeObjectStore("S3 itself", {
    open: async () => {
      const clock = createManualClock(Date.now());
      const open = () => createS3ObjectStore({ client: createS3Client(), bucket, clock: clock.now });
      return { store: open(), peer: open(), ...clock, close: async () => undefined };
    },
    download: downloadByHttp,
    exceptions: {
      "a link holds until the millisecond that it tells, and not at it": "no test can move the clock of S3",
    },
  });
}
