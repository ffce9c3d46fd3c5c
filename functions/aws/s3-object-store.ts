import { createHash } from "node:crypto";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { Fault } from "../contract/fault.ts";
import { toContentDisposition } from "../contract/file-name.ts";
import type { Clock, LinkRequest, ObjectStore, PutCondition, PutRequest } from "../contract/ports.ts";

/**
 * The object store on S3. Conditional writes are S3's own; an object's SHA-256 travels with it, so that S3 refuses
 * bytes that changed on the way.
 */

export type S3ObjectStoreOptions = { readonly client: S3Client; readonly bucket: string; readonly clock: Clock };

/** S3 refuses to sign for longer (Signature Version 4). */
const MAX_LINK_SECONDS = 7 * 24 * 3600;

/**
 * Both checksum settings at once: with the SDK's defaults every link carries a checksum parameter, and with only one of
 * them changed a GET link carries the checksum of an empty body.
 */
export function createS3Client(): S3Client {
  return new S3Client({ requestChecksumCalculation: "WHEN_REQUIRED", responseChecksumValidation: "WHEN_REQUIRED" });
}

export function createS3ObjectStore(options: S3ObjectStoreOptions): ObjectStore {
  const { client, bucket } = options;
  return {
    put: (request) => put(request, options),
    get: async (key, { maxBytes }) => {
      const found = await unlessMissing(client.send(new GetObjectCommand({ Bucket: bucket, Key: key })));
      if (found === undefined) return undefined;
      const { Body, ContentLength = 0, ContentType = "application/octet-stream", ETag = "" } = found;
      if (Body === undefined) throw new Fault("DEFECT", `the store answered for ${key} without a body`);
      if (ContentLength > maxBytes) {
        // The connection is dropped instead of drained: the rest is unwanted and may be gigabytes.
        if ("destroy" in Body && typeof Body.destroy === "function") Body.destroy();
        throw new Fault("DEFECT", `the object at ${key} has ${ContentLength} bytes, at most ${maxBytes} expected`);
      }
      return { bytes: await Body.transformToByteArray(), mediaType: ContentType, etag: ETag };
    },
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

async function put({ key, bytes, mediaType, condition }: PutRequest, { client, bucket }: S3ObjectStoreOptions) {
  const command = new PutObjectCommand({
    Bucket: bucket,
    Key: key,
    Body: bytes,
    ContentType: mediaType,
    ChecksumSHA256: createHash("sha256").update(bytes).digest("base64"),
    ...toHeaders(condition),
  });
  try {
    const { ETag = "" } = await client.send(command);
    return { stored: true, etag: ETag } as const;
  } catch (error) {
    if (condition !== undefined && isConditionFailure(error)) return { stored: false } as const;
    throw error;
  }
}

function toHeaders(condition: PutCondition | undefined): { IfNoneMatch?: string; IfMatch?: string } {
  if (condition === undefined) return {};
  return condition.type === "absent" ? { IfNoneMatch: "*" } : { IfMatch: condition.etag };
}

/** 412 when the condition does not hold, 409 when another write to the key is under way, 404 for a match on nothing. */
function isConditionFailure(error: unknown): boolean {
  const status = error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
  return status === 412 || status === 409 || status === 404;
}

async function unlessMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404) return undefined;
    throw error;
  }
}

/**
 * A link dies with the credentials that signed it, and the SDK signs without a word for longer than they live; so the
 * shorter of the two is asked for and told.
 */
async function presign(
  key: string,
  { fileName, mediaType, seconds }: LinkRequest,
  { client, bucket, clock }: S3ObjectStoreOptions,
) {
  // The signature's date has whole seconds.
  const signedAt = Math.floor(clock() / 1000) * 1000;
  const { expiration } = await client.config.credentials();
  const left = expiration === undefined ? MAX_LINK_SECONDS : Math.floor((expiration.getTime() - signedAt) / 1000);
  const expiresIn = Math.min(seconds, left, MAX_LINK_SECONDS);
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
