import { createS3Client, createS3ObjectStore } from "./aws/s3-object-store.ts";
import { createQueueHandler } from "./aws/sqs-events.ts";
import { DeadJobsEnv, parseEnv } from "./contract/env.ts";
import { MAX_JOB_ATTEMPTS } from "./contract/job-times.ts";
import { giveUpJobs } from "./job/give-up-jobs.ts";
import { createJsonLog } from "./wiring/json-log.ts";

const env = parseEnv(DeadJobsEnv, process.env);
const clock = () => Date.now();
const log = createJsonLog((line) => process.stdout.write(`${line}\n`));
const store = createS3ObjectStore({ client: createS3Client(), bucket: env.BUCKET_NAME, clock });

export const handler = createQueueHandler({
  log,
  process: (messages) => giveUpJobs(messages, { store, clock, log, maxAttempts: MAX_JOB_ATTEMPTS }),
});
