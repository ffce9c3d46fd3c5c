import { randomBytes } from "node:crypto";
import { createArgumentChecker } from "../../../functions/broker/argument-schema.ts";
import { createInProcessRunner } from "../../../functions/broker/in-process-runner.ts";
import { type JobRecord, JobRequest } from "../../../functions/contract/job.ts";
import { DEFAULT_LIMITS } from "../../../functions/contract/limits.ts";
import type { ObjectStore } from "../../../functions/contract/ports.ts";
import { HANDLERS } from "../../../functions/handlers/table.ts";
import type { ReportContext } from "../../../functions/job/report-job.ts";
import { type JobContext, runJob } from "../../../functions/job/run-job.ts";
import { createFakeToolSource } from "../../kit/fake-tool-source.ts";
import { createManualClock, type ManualClock } from "../../kit/manual-clock.ts";
import { createMemoryObjectStore, type MemoryObjectStore } from "../../kit/memory-object-store.ts";
import { shippedCatalog } from "../catalog/catalogs.ts";

export const OWNER = "owner-1";
export const START = Date.UTC(2026, 10, 30, 7);
export const ARTIFACT_DAYS = 7;

/** How long a job of these tests holds its key, or a worker its job. */
export const LEASE_MS = 30_000;

const ALL = ["local", "status_update@1", "meeting_minutes@1", "calendar_event@1"];

export type JobWorld = {
  readonly context: JobContext;
  readonly reporting: ReportContext;
  readonly store: MemoryObjectStore;
  readonly clock: ManualClock;
  readonly logged: readonly {
    readonly level: string;
    readonly fields: Readonly<Record<string, unknown>> | undefined;
  }[];
  readonly keys: () => Promise<readonly string[]>;
  /** The outcome of a job as a caller would write it. */
  readonly run: (request: unknown, owner?: string, idempotencyKey?: string) => ReturnType<typeof runJob>;
  /** The record of a job that is expected to run. */
  readonly record: (request: unknown, owner?: string) => Promise<JobRecord>;
};

/** The shipped skills over a store in memory; `wrap` puts something between the product and the store. */
export function jobWorld(
  changes: Partial<JobContext> = {},
  wrap = (store: ObjectStore): ObjectStore => store,
): JobWorld {
  const clock = createManualClock(START);
  const store = createMemoryObjectStore({ clock: clock.now });
  const logged: { level: string; fields: Readonly<Record<string, unknown>> | undefined }[] = [];
  const context: JobContext = {
    catalog: shippedCatalog(ALL),
    store: wrap(store),
    runner: createInProcessRunner(HANDLERS, clock.now),
    openSession: () => createFakeToolSource([]).openSession(),
    checkArguments: createArgumentChecker(),
    limits: DEFAULT_LIMITS,
    leaseMs: LEASE_MS,
    clock: clock.now,
    randomBytes,
    log: (level, _, fields) => logged.push({ level, fields }),
    ...changes,
  };
  const run = (request: unknown, owner = OWNER, idempotencyKey?: string) =>
    runJob({ owner, request: JobRequest.parse(request), idempotencyKey, requestId: "request-1" }, context);
  return {
    context,
    reporting: { store: context.store, clock: clock.now, artifactDays: ARTIFACT_DAYS },
    store,
    clock,
    logged,
    keys: async () => (await store.list("", { limit: 1_000 })).keys,
    run,
    record: async (request, owner) => {
      const ran = await run(request, owner);
      if (!ran.ok) throw ran.fault;
      return ran.value;
    },
  };
}

export const pdfCall = (body = "We met.", more: Readonly<Record<string, unknown>> = {}) => ({
  tool: "create_pdf@1",
  arguments: { body, ...more },
});
export const planCall = (goal = "Ship it") => ({ tool: "make_plan@1", arguments: { goal, steps: ["Build"] } });
