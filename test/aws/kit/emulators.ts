import { CreateBucketCommand, ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";
import { buildApp } from "fauxqs";
import { findMoto, startMoto } from "../../kit/moto.ts";
import { createTestS3Client } from "../../kit/s3-client.ts";
import { startS3Server } from "../../kit/s3-server.ts";
import { REGION } from "./names.ts";

/** S3 and SQS on this machine: independent emulators, each for what it gets right. */

/** Lambda's credentials are those of a session. */
export const CREDENTIALS = {
  accessKeyId: "ASIATEST",
  secretAccessKey: "the secret of the tests",
  sessionToken: "the session of the tests",
} as const;

export type Storage = {
  readonly url: string;
  readonly client: S3Client;
  /** `moto`, or our own strict server where this machine has no moto. */
  readonly kind: "moto" | "s3-server";
  close(): Promise<void>;
};

export const moto = findMoto();

/** With an empty bucket of this name. */
export async function startStorage(bucket: string): Promise<Storage> {
  const { kind, url, close } = await startServer(bucket);
  const client = createTestS3Client(url, { credentials: CREDENTIALS, region: REGION });
  if (kind === "moto") {
    const CreateBucketConfiguration = { LocationConstraint: REGION } as const;
    await client.send(new CreateBucketCommand({ Bucket: bucket, CreateBucketConfiguration }));
  }
  return { kind, url, client, close };
}

async function startServer(bucket: string): Promise<Omit<Storage, "client">> {
  if (moto !== undefined) return { kind: "moto", ...(await startMoto(moto)) };
  const server = await startS3Server({ credentials: CREDENTIALS, bucket, clock: Date.now });
  return { kind: "s3-server", url: server.url, close: server.close };
}

/** Keys of all objects that begin so. */
export async function keysOf(client: S3Client, bucket: string, prefix: string): Promise<readonly string[]> {
  const { Contents = [], IsTruncated } = await client.send(
    new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix }),
  );
  if (IsTruncated === true) throw new Error("more than a page of objects");
  return Contents.flatMap(({ Key }) => Key ?? []);
}

export async function startQueueing(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const app = buildApp({ logger: false, defaultRegion: REGION });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return { url, close: async () => app.close() };
}
