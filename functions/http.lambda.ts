import { randomBytes } from "node:crypto";
import { join } from "node:path";
import pins from "../skills/pins.json" with { type: "json" };
import { createHttpHandler } from "./aws/http/handler.ts";
import { createS3Client, createS3ObjectStore } from "./aws/s3-object-store.ts";
import { HttpEnv, parseEnv } from "./contract/env.ts";
import { MAX_HTTP_BODY_BYTES, PRODUCT_VERSION } from "./contract/product.ts";
import { parsePins } from "./repository/pins.ts";
import { createApi } from "./wiring/create-api.ts";
import { createJsonLog } from "./wiring/json-log.ts";

const env = parseEnv(HttpEnv, process.env);
const clock = () => Date.now();
// Not console.log: Lambda would write a time, an id and INFO before each line, and no filter could read it as JSON.
const log = createJsonLog((line) => process.stdout.write(`${line}\n`));

const api = createApi({
  store: createS3ObjectStore({ client: createS3Client(), bucket: env.BUCKET_NAME, clock }),
  clock,
  randomBytes,
  log,
  skillsRoot: join(import.meta.dirname, "skills"),
  pins: () => parsePins(pins),
  approvals: env.APPROVED_TOOLS,
  limits: env.LIMITS,
  artifactDays: env.ARTIFACT_DAYS,
});

export const handler = createHttpHandler({
  api,
  auth: env.AUTH,
  maxBodyBytes: MAX_HTTP_BODY_BYTES,
  version: PRODUCT_VERSION,
  log,
  clock,
});
