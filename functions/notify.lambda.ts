import mcp from "../mcp.json" with { type: "json" };
import { createS3Client, createS3ObjectStore } from "./aws/s3-object-store.ts";
import { createSqsClient, createSqsEventQueue } from "./aws/sqs-event-queue.ts";
import { createQueueHandler } from "./aws/sqs-events.ts";
import { NotifyEnv, parseEnv } from "./contract/env.ts";
import { orThrow } from "./contract/fault.ts";
import { parseMcpServers } from "./contract/mcp-server.ts";
import { toDelaySeconds } from "./contract/refresh-limits.ts";
import { toBucketRules } from "./refresh/debounce.ts";
import { takeNotifications } from "./refresh/take-notifications.ts";
import { createJsonLog } from "./wiring/json-log.ts";

const env = parseEnv(NotifyEnv, process.env);
const clock = () => Date.now();
const log = createJsonLog((line) => process.stdout.write(`${line}\n`));
const debounceSeconds = env.DEBOUNCE_SECONDS;

const context = {
  refreshQueue: createSqsEventQueue({ client: createSqsClient(), queueUrl: env.REFRESH_QUEUE_URL }),
  store: createS3ObjectStore({ client: createS3Client(), bucket: env.BUCKET_NAME, clock }),
  rules: toBucketRules({ debounceSeconds, delaySeconds: toDelaySeconds(debounceSeconds) }),
  servers: new Set(orThrow(parseMcpServers(mcp, { reserved: [] })).map(({ name }) => name)),
  log,
};

export const handler = createQueueHandler({ log, process: (messages) => takeNotifications(messages, context) });
