import type { S3ClientConfig } from "@aws-sdk/client-s3";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createS3ObjectStore } from "../../../functions/aws/s3-object-store.ts";
import { AWS_TIMEOUTS } from "../../../functions/aws/timeouts.ts";
import type { ObjectStore } from "../../../functions/contract/ports.ts";
import { createManualClock } from "../../kit/manual-clock.ts";
import { createTestS3Client, impatience, TEST_BUCKET, TEST_CREDENTIALS } from "../../kit/s3-client.ts";
import { type S3Server, startS3Server } from "../../kit/s3-server.ts";
import "../../kit/to-fail.ts";

const START = Date.UTC(2027, 0, 31, 12, 0, 0, 750);
const LINK = { fileName: "Minutes.pdf", mediaType: "application/pdf", seconds: 86_400 };
const MEBI = 1024 * 1024;
const clock = createManualClock(START);

let server: S3Server;
beforeEach(async () => {
  server = await startS3Server({ credentials: TEST_CREDENTIALS, bucket: TEST_BUCKET, clock: clock.now });
});
afterEach(() => server.close());

function open(overrides: S3ClientConfig = {}, bucket = TEST_BUCKET): ObjectStore {
  return createS3ObjectStore({ client: createTestS3Client(server.url, overrides), bucket, clock: clock.now });
}

function openWith(credentials: { readonly expiration?: Date; readonly sessionToken?: string }): ObjectStore {
  return open({ credentials: { ...TEST_CREDENTIALS, ...credentials } });
}

function putText(store: ObjectStore, text: string, condition?: { type: "absent" } | { type: "match"; etag: string }) {
  const conditions = condition === undefined ? {} : { condition };
  return store.put({ key: "a", bytes: Buffer.from(text), mediaType: "text/plain", ...conditions });
}

async function textOf(store: ObjectStore): Promise<string> {
  return Buffer.from((await store.get("a", { maxBytes: MEBI }))?.bytes ?? []).toString();
}

describe("a presigned link", () => {
  test("has these query parameters and no other", async () => {
    const { url } = await openWith({ sessionToken: "the token" }).presign("a", LINK);
    expect([...new URL(url).searchParams.keys()].sort()).toEqual([
      "X-Amz-Algorithm",
      "X-Amz-Content-Sha256",
      "X-Amz-Credential",
      "X-Amz-Date",
      "X-Amz-Expires",
      "X-Amz-Security-Token",
      "X-Amz-Signature",
      "X-Amz-SignedHeaders",
      "response-content-disposition",
      "response-content-type",
      "x-id",
    ]);
  });

  test("dies with the credentials that signed it, and tells so", async () => {
    const expiration = new Date(START + 60_000);
    const { url, expiresAt } = await openWith({ expiration }).presign("a", LINK);
    expect(expiresAt).toBeLessThanOrEqual(expiration.getTime());
    expect(expiresAt).toBeGreaterThan(expiration.getTime() - 2000);
    expect(Number(new URL(url).searchParams.get("X-Amz-Expires"))).toBeLessThanOrEqual(60);
  });

  test.each([-1, 0, 200])("is refused when the credentials end %i ms from now", async (left) => {
    const store = openWith({ expiration: new Date(START + left) });
    await expect(store.presign("a", LINK)).rejects.toFail("DEFECT");
  });

  test("promises an hour at the most when a session does not tell its end, as in Lambda", async () => {
    const { expiresAt } = await openWith({ sessionToken: "the token" }).presign("a", LINK);
    expect(expiresAt).toBe(START - 750 + 3_600_000);
  });

  test("lives as long as asked with credentials that do not end", async () => {
    const { expiresAt } = await open().presign("a", LINK);
    expect(expiresAt).toBe(START - 750 + 86_400_000);
  });

  test("is made without a request", async () => {
    await open().presign("a", LINK);
    expect(server.requests).toEqual([]);
  });
});

describe("an object over the limit", () => {
  test("is refused by its declared length, without waiting for its body", async () => {
    const store = open();
    await store.put({ key: "a", bytes: new Uint8Array(MEBI), mediaType: "text/plain" });
    server.behave("hang-in-body");
    await expect(store.get("a", { maxBytes: MEBI - 1 })).rejects.toFail("DEFECT");
  });

  test("has its connection closed, so that the rest is never sent", async () => {
    const store = open();
    await store.put({ key: "a", bytes: new Uint8Array(MEBI), mediaType: "text/plain" });
    server.behave("hang-in-body");
    await store.get("a", { maxBytes: 10 }).catch(() => undefined);
    await expect.poll(() => server.connections()).toBe(0);
  });
});

describe("an object that did not change", () => {
  test("is told of without a body", async () => {
    const store = open();
    const put = await putText(store, "one");
    server.behave("hang-in-body");
    expect(await store.getUnless(put.stored ? put.etag : "", "a", { maxBytes: 9 })).toBe("unchanged");
  });

  test("is told of by a peer that ignores the condition, too, and its connection is closed", async () => {
    const client = createTestS3Client(server.url);
    client.middlewareStack.add(
      (next) => (args) => {
        Reflect.set(args.input, "IfNoneMatch", undefined);
        return next(args);
      },
      { step: "initialize" },
    );
    const store = createS3ObjectStore({ client, bucket: TEST_BUCKET, clock: clock.now });
    const put = await store.put({ key: "a", bytes: new Uint8Array(MEBI), mediaType: "text/plain" });
    server.behave("hang-in-body");
    expect(await store.getUnless(put.stored ? put.etag : "", "a", { maxBytes: 9 })).toBe("unchanged");
    await expect.poll(() => server.connections()).toBe(0);
  });
});

describe("bytes that changed on the way", () => {
  test("are refused by S3 and not stored", async () => {
    const client = createTestS3Client(server.url);
    client.middlewareStack.add(
      (next) => (args) => {
        const { request } = args;
        if (typeof request === "object" && request !== null) Reflect.set(request, "body", Buffer.from("spoilt"));
        return next(args);
      },
      { step: "build", priority: "low" },
    );
    const store = createS3ObjectStore({ client, bucket: TEST_BUCKET, clock: clock.now });
    await expect(putText(store, "whole!")).rejects.toThrow(expect.objectContaining({ name: "BadDigest" }));
    expect(await open().get("a", { maxBytes: 9 })).toBeUndefined();
  });
});

describe("an error that says nothing about a condition", () => {
  const DENIED = { status: 403, code: "AccessDenied" };

  test.each([
    ["put", (store: ObjectStore) => putText(store, "x")],
    ["conditional put", (store: ObjectStore) => putText(store, "x", { type: "absent" })],
    ["get", (store: ObjectStore) => store.get("a", { maxBytes: 9 })],
    ["get unless", (store: ObjectStore) => store.getUnless('"x"', "a", { maxBytes: 9 })],
    ["delete", (store: ObjectStore) => store.delete("a")],
    ["list", (store: ObjectStore) => store.list("", { limit: 9 })],
  ])("is thrown by %s", async (_, act) => {
    server.behave(DENIED);
    await expect(act(open())).rejects.toThrow(expect.objectContaining({ name: "AccessDenied" }));
    const broken = { status: 500, code: "InternalError" };
    server.behave(broken, broken, broken);
    await expect(act(open())).rejects.toThrow(expect.objectContaining({ name: "InternalError" }));
  });

  test.each([
    ["get", (store: ObjectStore) => store.get("a", { maxBytes: 9 })],
    ["get unless", (store: ObjectStore) => store.getUnless('"x"', "a", { maxBytes: 9 })],
    ["a put where nothing may be", (store: ObjectStore) => putText(store, "x", { type: "absent" })],
    ["a put over a version", (store: ObjectStore) => putText(store, "x", { type: "match", etag: '"x"' })],
  ])("is thrown by %s when the bucket is missing, which is a 404 too", async (_, act) => {
    const store = open({}, "no-such-bucket");
    await expect(act(store)).rejects.toThrow(expect.objectContaining({ name: "NoSuchBucket" }));
  });

  test("is not stored as a condition that did not hold when there was no condition", async () => {
    server.behave({ status: 412, code: "PreconditionFailed" });
    await expect(putText(open(), "x")).rejects.toThrow(expect.objectContaining({ name: "PreconditionFailed" }));
  });
});

describe("a conditional write", () => {
  const CONFLICT = { status: 409, code: "ConditionalRequestConflict" } as const;

  test("is sent again when another write to the key was under way", async () => {
    server.behave(CONFLICT, CONFLICT, CONFLICT);
    expect(await putText(open(), "x", { type: "absent" })).toMatchObject({ stored: true });
    expect(server.requests).toEqual(["PUT a", "PUT a", "PUT a", "PUT a"]);
  });

  test("is not stored when other writes are under way for longer than it is sent again", async () => {
    server.behave(CONFLICT, CONFLICT, CONFLICT, CONFLICT);
    expect(await putText(open(), "x", { type: "absent" })).toEqual({ stored: false });
  });

  test("that is refused at the first attempt costs one request", async () => {
    const store = open();
    await putText(store, "one");
    expect(await putText(store, "two", { type: "absent" })).toEqual({ stored: false });
    expect(server.requests).toEqual(["PUT a", "PUT a"]);
  });

  test("is stored when it was done but the answer was lost", async () => {
    const store = open();
    server.behave("serve-then-drop");
    const first = await putText(store, "one", { type: "absent" });
    expect(first).toEqual({ stored: true, etag: (await store.get("a", { maxBytes: 9 }))?.etag });
    server.behave("serve-then-drop");
    const etag = first.stored ? first.etag : "";
    expect(await putText(store, "two", { type: "match", etag })).toMatchObject({ stored: true });
    expect(await textOf(store)).toBe("two");
  });

  test("is not stored when the repeated attempt meets another's bytes, even if they are the same", async () => {
    const store = open();
    await putText(store, "same");
    server.behave({ status: 500, code: "InternalError" });
    expect(await putText(store, "same", { type: "absent" })).toEqual({ stored: false });
  });

  test("is not stored when the repeated attempt finds nothing to match", async () => {
    server.behave({ status: 500, code: "InternalError" });
    expect(await putText(open(), "x", { type: "match", etag: '"x"' })).toEqual({ stored: false });
  });
});

describe("a peer in trouble", () => {
  test("is asked again, and the caller does not notice", async () => {
    const store = open();
    server.behave({ status: 500, code: "InternalError" });
    expect(await putText(store, "x")).toMatchObject({ stored: true });
    server.behave({ status: 500, code: "InternalError" });
    expect(await textOf(store)).toBe("x");
  });

  test("that never answers fails the call after three attempts", async () => {
    server.behave("hang", "hang", "hang");
    const failed = open(impatience(50)).get("a", { maxBytes: 9 });
    const wanted = { name: "TimeoutError", $metadata: expect.objectContaining({ attempts: 3 }) };
    await expect(failed).rejects.toThrow(expect.objectContaining(wanted));
  });

  test.each(["hang-in-body", "cut-body"] as const)(
    "that stops in the middle of a body fails the read (%s)",
    async (way) => {
      await open().put({ key: "a", bytes: new Uint8Array(MEBI), mediaType: "text/plain" });
      server.behave(way);
      await expect(open(impatience(200)).get("a", { maxBytes: MEBI })).rejects.toThrow();
    },
  );

  test("is given up while a function of 28 s that worked for 20 s can still say so", () => {
    const { connectionTimeout, requestTimeout, socketTimeout, throwOnRequestTimeout } = AWS_TIMEOUTS;
    expect(3 * Math.max(requestTimeout, connectionTimeout) + socketTimeout).toBeLessThanOrEqual(8000);
    expect(throwOnRequestTimeout).toBe(true);
  });

  test("is given up so by the client that the function makes, whatever the environment says", async () => {
    vi.stubEnv("AWS_MAX_ATTEMPTS", "9");
    const client = createTestS3Client(server.url);
    await createS3ObjectStore({ client, bucket: TEST_BUCKET, clock: clock.now }).delete("a");
    vi.unstubAllEnvs();
    expect(await client.config.maxAttempts()).toBe(3);
    const { requestHandler } = client.config;
    // Every handler of the SDK has it, and the type does not tell.
    expect(Reflect.apply(Reflect.get(requestHandler, "httpHandlerConfigs"), requestHandler, [])).toMatchObject(
      AWS_TIMEOUTS,
    );
  });
});
