import { createArgumentChecker } from "../broker/argument-schema.ts";
import { createInProcessRunner } from "../broker/in-process-runner.ts";
import type { Installation } from "../catalog/catalog.ts";
import { createCatalogReader } from "../catalog/published-catalog.ts";
import { type LimitsInput, operatorLimits, toAsyncLimits } from "../contract/limits.ts";
import type { Clock, FailedMessages, Log, ObjectStore, ReceivedMessage, ToolSource } from "../contract/ports.ts";
import { HANDLERS } from "../handlers/table.ts";
import { takeJobs } from "../job/take-jobs.ts";

/**
 * Asynchronous jobs put together over adapters that the entry point chose: the same in the cloud and on one machine.
 */

export type WorkerOptions = {
  readonly installed: Installation;
  readonly store: ObjectStore;
  readonly toolSource: ToolSource;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: LimitsInput;
  readonly asyncJobSeconds: number;
  readonly maxListAgeMs: number;
  /** How long nobody else works on a job that was taken, ms. */
  readonly leaseMs: number;
  readonly redeliveryIsDeath: boolean;
};

/** Takes messages of the jobs queue and names those that failed. */
export function createWorker(
  options: WorkerOptions,
): (messages: readonly ReceivedMessage[]) => Promise<FailedMessages> {
  const { store, clock, log, leaseMs, redeliveryIsDeath, toolSource } = options;
  const catalogs = createCatalogReader(options);
  const working = {
    store,
    clock,
    log,
    leaseMs,
    redeliveryIsDeath,
    runner: createInProcessRunner(HANDLERS, clock),
    checkArguments: createArgumentChecker(),
    openSession: () => toolSource.openSession(),
    limits: toAsyncLimits(operatorLimits(options.limits), options.asyncJobSeconds),
  };
  return async (messages) => takeJobs(messages, { ...working, catalog: await catalogs.current() });
}
