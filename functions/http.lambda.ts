import { randomBytes } from "node:crypto";
import { join } from "node:path";
import mcp from "../mcp.json" with { type: "json" };
import pins from "../skills/pins.json" with { type: "json" };
import approvals from "./approvals.json" with { type: "json" };
import { createHttpHandler } from "./aws/http/handler.ts";
import { createS3Client, createS3ObjectStore } from "./aws/s3-object-store.ts";
import { HttpEnv, parseEnv } from "./contract/env.ts";
import { ANSWER_MS, MAX_HTTP_BODY_BYTES, PRODUCT_VERSION } from "./contract/product.ts";
import { LISTED_AT_ONCE, REQUESTED_LISTING_DEADLINE_MS, REQUESTED_PUBLISHING_MS } from "./contract/refresh-limits.ts";
import { parsePins } from "./repository/pins.ts";
import { createApi } from "./wiring/create-api.ts";
import { installProject } from "./wiring/install-project.ts";
import { createJsonLog } from "./wiring/json-log.ts";
import { createLazyEventQueue, createLazyToolSource } from "./wiring/lazy-ports.ts";

const env = parseEnv(HttpEnv, process.env);
const clock = () => Date.now();
// Not console.log: Lambda would write a time, an id and INFO before each line, and no filter could read it as JSON.
const log = createJsonLog((line) => process.stdout.write(`${line}\n`));

const installed = installProject({
  skillsRoot: join(import.meta.dirname, "skills"),
  pins: () => parsePins(pins),
  approvals,
  mcp,
  log,
});

const openQueue = (queueUrl: string) =>
  createLazyEventQueue(async () => {
    const { createSqsClient, createSqsEventQueue } = await import("./aws/sqs-event-queue.ts");
    return createSqsEventQueue({ client: createSqsClient(), queueUrl });
  });

const api = createApi({
  installed,
  store: createS3ObjectStore({ client: createS3Client(), bucket: env.BUCKET_NAME, clock }),
  notifications: openQueue(env.NOTIFICATIONS_QUEUE_URL),
  toolSource: createLazyToolSource(async () => {
    const { createMcpToolSource } = await import("./mcp/client/tool-source.ts");
    const { createAwsSecretReader } = await import("./aws/secrets.ts");
    return createMcpToolSource({ servers: installed.servers, readSecret: createAwsSecretReader({ clock }), clock });
  }),
  clock,
  randomBytes,
  log,
  jobs: openQueue(env.JOBS_QUEUE_URL),
  limits: env.LIMITS,
  asyncJobSeconds: env.ASYNC_JOB_SECONDS,
  artifactDays: env.ARTIFACT_DAYS,
  maxListAgeMs: env.MAX_LIST_AGE_SECONDS * 1000,
  listTimeoutMs: REQUESTED_LISTING_DEADLINE_MS,
  refreshTimeoutMs: REQUESTED_LISTING_DEADLINE_MS,
  publishTimeoutMs: REQUESTED_PUBLISHING_MS,
  listedAtOnce: LISTED_AT_ONCE,
});

export const handler = createHttpHandler({
  api,
  auth: env.AUTH,
  maxBodyBytes: MAX_HTTP_BODY_BYTES,
  version: PRODUCT_VERSION,
  answerMs: ANSWER_MS,
  log,
  clock,
});
