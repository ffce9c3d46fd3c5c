import type { IKey } from "aws-cdk-lib/aws-kms";
import { Construct } from "constructs";
import { JOB_WAITING_DAYS, MAX_JOB_ATTEMPTS, toWorkerSeconds } from "../../functions/contract/job-times.ts";
import { toEnvironments } from "../deploy-settings.ts";
import { DEAD_JOBS_SECONDS } from "../timeouts.ts";
import { ServiceFunction, type ServiceParts, SMALL_MIB, WHOLE_PROCESSOR_MIB } from "./service-function.ts";
import { feed, ServiceQueue, toConsumeStatement } from "./service-queue.ts";

/** The least that Lambda takes: what is given up is seldom much. */
const DEAD_JOBS_CONCURRENCY = 2;
/** Each takes two requests to the store. */
const DEAD_JOBS_AT_ONCE = 10;

export type JobsQueueProps = {
  /** Longest time of a job. */
  readonly asyncJobSeconds: number;
  /** Undefined: the service's own key. */
  readonly encryptionKey: IKey | undefined;
};

/** Jobs that nobody waits for. What no worker could end in so many attempts is among the dead letters. */
export function addJobsQueue(scope: Construct, id: string, props: JobsQueueProps): ServiceQueue {
  return new ServiceQueue(scope, id, {
    functionSeconds: toWorkerSeconds(props.asyncJobSeconds),
    deadLetterFunctionSeconds: DEAD_JOBS_SECONDS,
    maxReceives: MAX_JOB_ATTEMPTS,
    retentionDays: JOB_WAITING_DAYS,
    encryptionKey: props.encryptionKey,
  });
}

export type WorkerParts = ServiceParts & { readonly jobs: ServiceQueue };

/** The functions that run the jobs of the queue, and that mark those as failed which no attempt could end. */
export class WorkerPath extends Construct {
  readonly worker: ServiceFunction;
  readonly deadJobs: ServiceFunction;

  constructor(scope: Construct, id: string, parts: WorkerParts) {
    super(scope, id);
    this.worker = addWorker(this, parts);
    this.deadJobs = addDeadJobs(this, parts);
  }
}

function addWorker(scope: Construct, parts: WorkerParts): ServiceFunction {
  const { settings, jobs } = parts;
  const worker = new ServiceFunction(scope, "Worker", {
    name: "worker",
    parts,
    description: "skillbroker: runs the jobs that nobody waits for",
    memoryMiB: WHOLE_PROCESSOR_MIB,
    timeoutSeconds: toWorkerSeconds(settings.asyncJobSeconds),
    environment: toEnvironments(settings).worker,
    statements: [toConsumeStatement(jobs)],
  });
  // One job a batch: a second one would have what time the first one leaves.
  feed(worker.handler, jobs, { batchSize: 1, maxConcurrency: settings.asyncJobsAtOnce });
  return worker;
}

function addDeadJobs(scope: Construct, parts: WorkerParts): ServiceFunction {
  const { settings, jobs } = parts;
  const deadJobs = new ServiceFunction(scope, "DeadJobs", {
    name: "dead-jobs",
    parts,
    description: "skillbroker: marks jobs as failed that no attempt could end",
    memoryMiB: SMALL_MIB,
    timeoutSeconds: DEAD_JOBS_SECONDS,
    environment: toEnvironments(settings).deadJobs,
    statements: [toConsumeStatement(jobs.deadLetters)],
  });
  feed(deadJobs.handler, jobs.deadLetters, { batchSize: DEAD_JOBS_AT_ONCE, maxConcurrency: DEAD_JOBS_CONCURRENCY });
  return deadJobs;
}
