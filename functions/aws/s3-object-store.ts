import { createHash, randomUUID } from "node:crypto";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandInput,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { Fault } from "../contract/fault.ts";
import { toContentDisposition } from "../contract/file-name.ts";
import type {
  Clock,
  Link,
  LinkRequest,
  ObjectStore,
  PutCondition,
  PutRequest,
  PutResult,
  StoredObject,
} from "../contract/ports.ts";
import { AWS_ATTEMPTS, AWS_TIMEOUTS } from "./timeouts.ts";

/**
 * The object store on S3. Conditional writes are S3's own; an object's SHA-256 travels with it, so that S3 refuses
 * bytes that changed on the way.
 */

export type S3ObjectStoreOptions = { readonly client: S3Client; readonly bucket: string; readonly clock: Clock };

/** S3 refuses to sign for longer (Signature Version 4). */
const MAX_LINK_SECONDS = 7 * 24 * 3600;
/**
 * Lambda's environment has a role's credentials without their end. An hour is a judgement, not a measurement: how much
 * of the session is left cannot be known, and a longer promise would be the likelier to be broken.
 */
const MAX_SESSION_LINK_SECONDS = 3600;

/** Times that a write is sent again because S3 had another one to the same key under way. */
const MAX_CONFLICTS = 3;

/**
 * Both checksum settings at once: with the SDK's defaults every link carries a checksum parameter, and with only one of
 * them changed a GET link carries the checksum of an empty body. `overrides` are for another endpoint.
 */
export function createS3Client(overrides: S3ClientConfig = {}): S3Client {
  return new S3Client({
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: AWS_TIMEOUTS,
    maxAttempts: AWS_ATTEMPTS,
    ...overrides,
  });
}

export function createS3ObjectStore(options: S3ObjectStoreOptions): ObjectStore {
  const { client, bucket } = options;
  return {
    put: (request) => put(request, options),
    get: async (key, { maxBytes }) => {
      const found = await findObject({ Bucket: bucket, Key: key }, client);
      return found === undefined ? undefined : toStored(key, found, maxBytes);
    },
    getUnless: (etag, key, { maxBytes }) => getUnless(etag, key, { ...options, maxBytes }),
    delete: async (key) => {
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }));
    },
    list: async (prefix, { limit, after }) => {
      const StartAfter = after === undefined ? {} : { StartAfter: after };
      const page = await client.send(
        new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, MaxKeys: limit, ...StartAfter }),
      );
      const keys = (page.Contents ?? []).flatMap(({ Key }) => Key ?? []);
      return { keys, next: page.IsTruncated === true ? keys.at(-1) : undefined };
    },
    presign: (key, request) => presign(key, request, options),
  };
}

async function put(request: PutRequest, options: S3ObjectStoreOptions): Promise<PutResult> {
  const { key, bytes, mediaType, condition } = request;
  const writeId = randomUUID();
  const command = () =>
    new PutObjectCommand({
      Bucket: options.bucket,
      Key: key,
      Body: bytes,
      ContentType: mediaType,
      ChecksumSHA256: createHash("sha256").update(bytes).digest("base64"),
      Metadata: { [WRITE_ID]: writeId },
      ...toHeaders(condition),
    });
  let repeated = false;
  for (let conflicts = 0; ; conflicts += 1) {
    try {
      const { ETag = "" } = await options.client.send(command());
      return { stored: true, etag: ETag };
    } catch (error) {
      if (!(error instanceof S3ServiceException) || condition === undefined) throw error;
      repeated ||= conflicts > 0 || (error.$metadata.attempts ?? 1) > 1;
      // Another write to the key is under way, it may be our own whose answer was lost: S3 asks to send it again.
      if (error.$metadata.httpStatusCode === 409 && conflicts < MAX_CONFLICTS) continue;
      if (!isConditionFailure(error, condition)) throw error;
      return repeated ? findOwnWrite(key, writeId, options) : { stored: false };
    }
  }
}

function toHeaders(condition: PutCondition | undefined): { IfNoneMatch?: string; IfMatch?: string } {
  if (condition === undefined) return {};
  return condition.type === "absent" ? { IfNoneMatch: "*" } : { IfMatch: condition.etag };
}

/**
 * 412 when the condition does not hold, 409 when other writes to the key are still under way, `NoSuchKey` for a match
 * on nothing. A 404 of another name is a bucket that is not there, which is no answer to the condition.
 */
function isConditionFailure(error: S3ServiceException, condition: PutCondition): boolean {
  const status = error.$metadata.httpStatusCode;
  return status === 412 || status === 409 || (condition.type === "match" && error.name === "NoSuchKey");
}

const WRITE_ID = "write-id";

/**
 * An attempt whose answer was lost may have stored, and then the repeated one meets our own object and fails the
 * condition. Only the id tells: another writer's bytes may be the same.
 */
async function findOwnWrite(
  key: string,
  writeId: string,
  { client, bucket }: S3ObjectStoreOptions,
): Promise<PutResult> {
  const head = await unlessNamed("NotFound", client.send(new HeadObjectCommand({ Bucket: bucket, Key: key })));
  if (head?.ETag === undefined || head.Metadata?.[WRITE_ID] !== writeId) return { stored: false };
  return { stored: true, etag: head.ETag };
}

function findObject(input: GetObjectCommandInput, client: S3Client): Promise<GetObjectCommandOutput | undefined> {
  return unlessNamed("NoSuchKey", client.send(new GetObjectCommand(input)));
}

async function getUnless(
  etag: string,
  key: string,
  { client, bucket, maxBytes }: S3ObjectStoreOptions & { readonly maxBytes: number },
): Promise<StoredObject | "unchanged" | undefined> {
  try {
    const found = await findObject({ Bucket: bucket, Key: key, IfNoneMatch: etag }, client);
    if (found === undefined) return undefined;
    // S3's kin may not know the condition, and then send what is there.
    if (found.ETag !== etag) return await toStored(key, found, maxBytes);
    dropBody(found);
    return "unchanged";
  } catch (error) {
    // The SDK takes the answer "not modified" for an error, and its name for it differs between versions.
    if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 304) return "unchanged";
    throw error;
  }
}

/** By name and not by status: a bucket that is not there is a 404 too, and must not look like an empty one. */
async function unlessNamed<T>(name: string, answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof S3ServiceException && error.name === name) return undefined;
    throw error;
  }
}

async function toStored(key: string, found: GetObjectCommandOutput, maxBytes: number): Promise<StoredObject> {
  const { ContentType = "application/octet-stream", ETag = "" } = found;
  return { bytes: await readBody(key, found, maxBytes), mediaType: ContentType, etag: ETag };
}

async function readBody(key: string, found: GetObjectCommandOutput, maxBytes: number): Promise<Uint8Array> {
  const { Body, ContentLength } = found;
  if (Body === undefined) throw new Fault("DEFECT", `the store answered for ${key} without a body`);
  if (ContentLength === undefined || ContentLength > maxBytes) {
    dropBody(found);
    throw new Fault("DEFECT", `the object at ${key} has ${ContentLength} bytes, at most ${maxBytes} expected`);
  }
  return await Body.transformToByteArray();
}

/** The connection is dropped instead of drained: the rest is unwanted and may be gigabytes. */
function dropBody({ Body }: GetObjectCommandOutput): void {
  if (Body !== undefined && "destroy" in Body && typeof Body.destroy === "function") Body.destroy();
}

/**
 * A link dies with the credentials that signed it, and the SDK signs without a word for longer than they live; so the
 * shorter of the two is asked for and told.
 */
async function presign(
  key: string,
  { fileName, mediaType, seconds }: LinkRequest,
  { client, bucket, clock }: S3ObjectStoreOptions,
): Promise<Link> {
  // The signature's date has whole seconds.
  const signedAt = Math.floor(clock() / 1000) * 1000;
  const expiresIn = Math.min(seconds, await secondsLeft(client, signedAt));
  if (expiresIn < 1) throw new Fault("DEFECT", "the signing credentials have expired");
  const command = new GetObjectCommand({
    Bucket: bucket,
    Key: key,
    ResponseContentDisposition: toContentDisposition(fileName),
    ResponseContentType: mediaType,
  });
  const url = await getSignedUrl(client, command, { expiresIn, signingDate: new Date(signedAt) });
  return { url, expiresAt: signedAt + expiresIn * 1000 };
}

/** How long a link can live that is signed at this moment. */
async function secondsLeft(client: S3Client, signedAt: number): Promise<number> {
  const { expiration, sessionToken } = await client.config.credentials();
  if (expiration !== undefined) {
    return Math.min(Math.floor((expiration.getTime() - signedAt) / 1000), MAX_LINK_SECONDS);
  }
  return sessionToken === undefined ? MAX_LINK_SECONDS : MAX_SESSION_LINK_SECONDS;
}
