import { join } from "node:path";
import mcp from "../mcp.json" with { type: "json" };
import pins from "../skills/pins.json" with { type: "json" };
import approvals from "./approvals.json" with { type: "json" };
import { createS3Client, createS3ObjectStore } from "./aws/s3-object-store.ts";
import { createQueueHandler } from "./aws/sqs-events.ts";
import { parseEnv, WorkerEnv } from "./contract/env.ts";
import { toWorkerSeconds } from "./contract/job-times.ts";
import { parsePins } from "./repository/pins.ts";
import { createWorker } from "./wiring/create-worker.ts";
import { installProject } from "./wiring/install-project.ts";
import { createJsonLog } from "./wiring/json-log.ts";
import { createLazyToolSource } from "./wiring/lazy-ports.ts";

const env = parseEnv(WorkerEnv, process.env);
const clock = () => Date.now();
const log = createJsonLog((line) => process.stdout.write(`${line}\n`));

const installed = installProject({
  skillsRoot: join(import.meta.dirname, "skills"),
  pins: () => parsePins(pins),
  approvals,
  mcp,
  log,
});

const work = createWorker({
  installed,
  store: createS3ObjectStore({ client: createS3Client(), bucket: env.BUCKET_NAME, clock }),
  toolSource: createLazyToolSource(async () => {
    const { createMcpToolSource } = await import("./mcp/client/tool-source.ts");
    const { createAwsSecretReader } = await import("./aws/secrets.ts");
    return createMcpToolSource({ servers: installed.servers, readSecret: createAwsSecretReader({ clock }), clock });
  }),
  clock,
  log,
  limits: env.LIMITS,
  asyncJobSeconds: env.ASYNC_JOB_SECONDS,
  maxListAgeMs: env.MAX_LIST_AGE_SECONDS * 1000,
  // The function does not live longer, so whoever finds the lease over finds nobody at work.
  leaseMs: toWorkerSeconds(env.ASYNC_JOB_SECONDS) * 1000,
  redeliveryIsDeath: false,
});

export const handler = createQueueHandler({ log, process: work });
