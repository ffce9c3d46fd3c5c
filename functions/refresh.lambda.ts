import { join } from "node:path";
import mcp from "../mcp.json" with { type: "json" };
import pins from "../skills/pins.json" with { type: "json" };
import approvals from "./approvals.json" with { type: "json" };
import { createS3Client, createS3ObjectStore } from "./aws/s3-object-store.ts";
import { createAwsSecretReader } from "./aws/secrets.ts";
import { createQueueHandler } from "./aws/sqs-events.ts";
import { parseEnv, RefreshEnv } from "./contract/env.ts";
import { LISTED_AT_ONCE, LISTING_DEADLINE_MS, PUBLISHING_MS, toDelaySeconds } from "./contract/refresh-limits.ts";
import { createMcpToolSource } from "./mcp/client/tool-source.ts";
import { toDebounceRules } from "./refresh/debounce.ts";
import { takeRefreshes } from "./refresh/take-refreshes.ts";
import { parsePins } from "./repository/pins.ts";
import { installProject } from "./wiring/install-project.ts";
import { createJsonLog } from "./wiring/json-log.ts";

const env = parseEnv(RefreshEnv, process.env);
const clock = () => Date.now();
const log = createJsonLog((line) => process.stdout.write(`${line}\n`));
const debounceSeconds = env.DEBOUNCE_SECONDS;

const installed = installProject({
  skillsRoot: join(import.meta.dirname, "skills"),
  pins: () => parsePins(pins),
  approvals,
  mcp,
  log,
});

const context = {
  installed,
  store: createS3ObjectStore({ client: createS3Client(), bucket: env.BUCKET_NAME, clock }),
  toolSource: createMcpToolSource({ servers: installed.servers, readSecret: createAwsSecretReader({ clock }), clock }),
  rules: toDebounceRules({
    debounceSeconds,
    delaySeconds: toDelaySeconds(debounceSeconds),
    longestWaitSeconds: env.LONGEST_WAIT_SECONDS,
  }),
  clock,
  log,
  maxListAgeMs: env.MAX_LIST_AGE_SECONDS * 1000,
  listTimeoutMs: LISTING_DEADLINE_MS,
  refreshTimeoutMs: LISTING_DEADLINE_MS,
  publishTimeoutMs: PUBLISHING_MS,
  listedAtOnce: LISTED_AT_ONCE,
};

export const handler = createQueueHandler({ log, process: (messages) => takeRefreshes(messages, context) });
