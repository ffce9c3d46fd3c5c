import { toCatalog } from "../../../functions/catalog/catalog.ts";
import type { Fault } from "../../../functions/contract/fault.ts";
import { type JobRecord, JobRequest } from "../../../functions/contract/job.ts";
import { toAsyncLimits } from "../../../functions/contract/limits.ts";
import { mcpRef } from "../../../functions/contract/offered-tool.ts";
import type { ObjectStore, QueueMessage, ReceivedMessage } from "../../../functions/contract/ports.ts";
import { cancelJob } from "../../../functions/job/cancel-job.ts";
import { giveUpJobs } from "../../../functions/job/give-up-jobs.ts";
import { getJob } from "../../../functions/job/job-store.ts";
import { queueJob } from "../../../functions/job/queue-job.ts";
import { takeJobs } from "../../../functions/job/take-jobs.ts";
import { refreshServers } from "../../../functions/refresh/refresh-servers.ts";
import { createFakeToolSource, offeredTool } from "../../kit/fake-tool-source.ts";
import { createManualClock } from "../../kit/manual-clock.ts";
import { createMemoryObjectStore } from "../../kit/memory-object-store.ts";
import { installedWith } from "../refresh/installed.ts";
import { received } from "../refresh/refresh-world.ts";
import { type JobWorld, jobWorld, LEASE_MS, START } from "./job-context.ts";

/** Asynchronous jobs over a store in memory and a queue that the test empties by hand. */

/** The form of a real owner's id, which a message must have. */
export const OWNER_ID = "0123456789abcdef0123456789abcdef";
export const ASYNC_SECONDS = 300;

export function asyncWorld(changes: Parameters<typeof jobWorld>[0] = {}, wrap = (store: ObjectStore) => store) {
  const world = jobWorld(changes, wrap);
  const sent: QueueMessage[] = [];
  const queueContext = {
    ...world.context,
    limits: toAsyncLimits(world.context.limits, ASYNC_SECONDS),
    jobs: { send: async (message: QueueMessage) => void sent.push(message) },
  };
  const recordOf = async (jobId: string): Promise<JobRecord | undefined> =>
    (await getJob(world.store, OWNER_ID, jobId))?.record;
  return {
    ...world,
    sent,
    queueContext,
    recordOf,
    submit: (request: unknown, idempotencyKey?: string, context = queueContext) =>
      queueJob(
        { owner: OWNER_ID, request: JobRequest.parse(request), idempotencyKey, requestId: "request-1" },
        context,
      ),
    /** What a worker says of one message; `store` and the like may be another worker's. */
    take: async (
      body: string,
      context: Partial<Parameters<typeof takeJobs>[1]> = {},
      message: Partial<ReceivedMessage> = {},
    ): Promise<Fault | undefined> => {
      const working = { ...queueContext, leaseMs: LEASE_MS, redeliveryIsDeath: false, ...context };
      const failed = await takeJobs([received(body, message)], working);
      return [...failed.values()][0];
    },
    giveUp: async (body: string): Promise<Fault | undefined> =>
      (await giveUpJobs([received(body)], { ...world.context, maxAttempts: 5 })).get("m1"),
    cancel: (jobId: string, owner = OWNER_ID) => cancelJob(owner, jobId, world.context),
  };
}

export type AsyncWorld = ReturnType<typeof asyncWorld>;

/** The queued job and its message. */
export async function queued(world: AsyncWorld, request: unknown): Promise<{ record: JobRecord; body: string }> {
  const outcome = await world.submit(request);
  if (!outcome.ok) throw outcome.fault;
  return { record: outcome.value, body: world.sent.at(-1)?.body ?? "" };
}

/** A world with an approved tool of a server, and a job that calls it. */
export async function lentWorld(): Promise<LentWorld> {
  const lookUp = offeredTool("look_up");
  const ref = mcpRef("s1", lookUp);
  const installed = installedWith(["s1"], { approvals: [ref] });
  const source = createFakeToolSource(["s1"]);
  source.server("s1").tools = [lookUp];
  const clock = createManualClock(START);
  const record = await refreshServers(
    { servers: ["s1"], cause: "request", dryRun: true },
    {
      installed,
      store: createMemoryObjectStore({ clock: clock.now }),
      toolSource: source,
      clock: clock.now,
      log: () => undefined,
      maxListAgeMs: 24 * 3600_000,
      listTimeoutMs: 1_000,
      refreshTimeoutMs: 1_000,
      publishTimeoutMs: 1_000,
      listedAtOnce: 1,
    },
  );
  if (!record.ok) throw record.fault;
  const catalog = toCatalog(installed, record.value, { now: START, maxListAgeMs: 24 * 3600_000 });
  const changes = { catalog, openSession: () => source.openSession() };
  const world = jobWorld(changes);
  return { world, job: { calls: [{ tool: ref }] }, calls: () => source.calls.length, changes };
}

type LentWorld = {
  readonly world: JobWorld;
  readonly job: { readonly calls: readonly { readonly tool: string }[] };
  /** Times that the tool was called. */
  readonly calls: () => number;
  readonly changes: Pick<JobWorld["context"], "catalog" | "openSession">;
};
