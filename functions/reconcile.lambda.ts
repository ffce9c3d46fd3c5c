import mcp from "../mcp.json" with { type: "json" };
import { createS3Client, createS3ObjectStore } from "./aws/s3-object-store.ts";
import { createSqsClient, createSqsEventQueue } from "./aws/sqs-event-queue.ts";
import { parseEnv, ReconcileEnv } from "./contract/env.ts";
import { orThrow } from "./contract/fault.ts";
import { parseMcpServers } from "./contract/mcp-server.ts";
import { reconcile } from "./refresh/reconcile.ts";
import { createJsonLog } from "./wiring/json-log.ts";

const env = parseEnv(ReconcileEnv, process.env);
const clock = () => Date.now();
const log = createJsonLog((line) => process.stdout.write(`${line}\n`));

const context = {
  servers: orThrow(parseMcpServers(mcp, { reserved: [] })),
  store: createS3ObjectStore({ client: createS3Client(), bucket: env.BUCKET_NAME, clock }),
  notifications: createSqsEventQueue({ client: createSqsClient(), queueUrl: env.NOTIFICATIONS_QUEUE_URL }),
  clock,
  log,
  due: { intervalMs: env.RECONCILE_SECONDS * 1000, maxListAgeMs: env.MAX_LIST_AGE_SECONDS * 1000 },
};

/** Whatever the schedule says: what is due is read from the catalog. */
export const handler = async (): Promise<void> => {
  try {
    await reconcile(context);
  } catch (error) {
    log("error", "reconcile failed", { error });
    throw error;
  }
};
