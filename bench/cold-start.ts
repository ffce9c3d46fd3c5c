import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { buildSync } from "esbuild";
import { BUNDLING, buildFunctions } from "../cdk/build-functions.ts";
import { placeProject } from "../cdk/bundle.ts";
import { toEnvironments } from "../cdk/deploy-settings.ts";
import { NO_SERVERS } from "../cdk/mcp-servers.ts";
import { verifySkills } from "../cdk/verified-skills.ts";
import { OperatorSettings } from "../functions/contract/settings.ts";

/**
 * Cold start of what is deployed: process start to handler imported, skills verified, as a ratio over an empty handler
 * in the same run. Below it what dominates: each part alone, with everything that it imports, so the parts overlap.
 */

const ROUNDS = 15;
const PARTS: readonly string[] = [
  "aws/s3-object-store.ts",
  "aws/http/handler.ts",
  "repository/load.ts",
  "handlers/table.ts",
  "broker/argument-schema.ts",
  "contract/api.ts",
  "contract/env.ts",
];

const root = dirname(import.meta.dirname);
const directory = mkdtempSync(join(tmpdir(), "skillbroker-cold-start-"));
try {
  const modules = new Map([
    ["all of it: the deployed handler, imported", await bundleWhole()],
    ...PARTS.map((part) => [`functions/${part}`, bundlePart(part)] as const),
  ]);
  console.log("\ncold start over an empty handler");
  for (const [name, ratios] of measureRatios(modules)) {
    console.log(`${median(ratios).toFixed(2).padStart(8)}x  ${name}`);
  }
} finally {
  rmSync(directory, { recursive: true, force: true });
}

function writeEmpty(): string {
  const path = join(directory, "empty.mjs");
  writeFileSync(path, "export const handler = async () => ({});\n");
  return path;
}

async function bundleWhole(): Promise<string> {
  const skills = verifySkills({ roots: [resolve(root, "skills")] });
  const code = join(directory, "code");
  await buildFunctions({ root, directory: code });
  const { http } = placeProject({
    code,
    skills,
    approvals: [],
    servers: NO_SERVERS,
    directory: join(directory, "whole"),
  });
  return join(http.directory, "index.mjs");
}

function bundlePart(part: string): string {
  const outdir = join(directory, part.replaceAll(/\W/g, "_"));
  mkdirSync(outdir);
  const entryPoints = [{ in: join("functions", part), out: "part" }];
  buildSync({ ...BUNDLING, absWorkingDir: root, entryPoints, outdir });
  return join(outdir, "part.mjs");
}

/** Each start over an empty one right before it, so that a busy moment hits both alike. */
function measureRatios(modules: ReadonlyMap<string, string>): ReadonlyMap<string, readonly number[]> {
  const empty = writeEmpty();
  const ratios = new Map<string, number[]>([...modules.keys()].map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, path] of modules) {
      const base = startMs(empty);
      ratios.get(name)?.push(startMs(path) / base);
    }
  }
  return ratios;
}

/** From spawn to exit. */
function startMs(path: string): number {
  const settings = OperatorSettings.parse({ tools: ["local"] });
  const env = {
    ...toEnvironments(settings).http,
    BUCKET_NAME: "bench",
    JOBS_QUEUE_URL: "https://sqs.eu-central-1.amazonaws.com/123456789012/jobs",
    NOTIFICATIONS_QUEUE_URL: "https://sqs.eu-central-1.amazonaws.com/123456789012/bench",
    AWS_REGION: "eu-central-1",
  };
  const started = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [path], { env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${path}: ${stderr}`);
  return performance.now() - started;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
