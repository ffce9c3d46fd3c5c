import type { Catalog } from "../catalog/catalog.ts";
import { type Outcome, succeed } from "../contract/fault.ts";
import type { JobRecord } from "../contract/job.ts";
import type { Limits } from "../contract/limits.ts";
import type { Clock, Log, ObjectStore } from "../contract/ports.ts";
import type { HeldKey } from "./idempotency.ts";
import { toInterruptedRecord } from "./interrupted.ts";
import { keepFirstJob } from "./job-store.ts";
import { logJob } from "./keep-job.ts";

export type HoldContext = {
  readonly store: ObjectStore;
  readonly catalog: Catalog;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly log: Log;
};

/**
 * What a key is held for, and what becomes of the key after it: kept for a job that stands, given back where nothing
 * ran, refused for ever where the answer was too large, let go where it broke off. A key whose job broke off before
 * while it called servers has a failed job from now on, and `act` is not done.
 */
export async function underKey(
  held: HeldKey,
  context: HoldContext,
  act: () => Promise<Outcome<JobRecord>>,
): Promise<Outcome<JobRecord>> {
  if (held.calledServers) {
    const { record, isNew } = await keepFirstJob(context.store, toInterruptedRecord(held.job, context));
    if (isNew) logJob(record, "sync", context.log);
    return succeed(record);
  }
  try {
    const outcome = await act();
    if (!outcome.ok) await (outcome.fault.code === "OUTPUT_TOO_LARGE" ? held.refuse(outcome.fault) : held.release());
    return outcome;
  } catch (error) {
    // The lease ends by itself; that it could not be ended sooner must not hide what went wrong.
    await held.giveUp().catch(() => undefined);
    throw error;
  }
}
