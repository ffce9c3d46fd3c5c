import type { S3Client, S3ClientConfig } from "@aws-sdk/client-s3";
import { createS3Client } from "../../functions/aws/s3-object-store.ts";
import { AWS_TIMEOUTS } from "../../functions/aws/timeouts.ts";

/** The product's own client, pointed at a server of the tests; only the address and the patience differ. */

export const TEST_CREDENTIALS = { accessKeyId: "AKIDTEST", secretAccessKey: "the secret of the tests" } as const;
export const TEST_BUCKET = "skillbroker-test";

export function createTestS3Client(url: string, overrides: S3ClientConfig = {}): S3Client {
  return createS3Client({
    endpoint: url,
    forcePathStyle: true,
    region: "eu-central-1",
    credentials: TEST_CREDENTIALS,
    ...overrides,
  });
}

/** Gives up on a silent peer at once; `ms` for what the product gives seconds. */
export function impatience(ms: number) {
  return { requestHandler: { ...AWS_TIMEOUTS, requestTimeout: ms, socketTimeout: ms } };
}
