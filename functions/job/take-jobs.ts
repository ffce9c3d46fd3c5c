import { Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { JobRecord } from "../contract/job.ts";
import type { Limits } from "../contract/limits.ts";
import { withFields } from "../contract/log-fields.ts";
import type { FailedMessages, ObjectStore, ReceivedMessage } from "../contract/ports.ts";
import { changeJob } from "./change-job.ts";
import { interrupted } from "./interrupted.ts";
import { isEnded, isHeld, toFailedRecord } from "./job-record.ts";
import { deleteRequest, getJob, getRequest, isUnchanged, replaceJob, type StoredJob } from "./job-store.ts";
import { logJob, type MadeJob, makeJob, putFiles } from "./keep-job.ts";
import { callsServers, planJob } from "./plan-job.ts";
import { readJobMessage } from "./read-job-message.ts";
import { type RunContext, runCalls } from "./run-calls.ts";

/**
 * From the jobs queue to a job that has ended. A message may come twice, and its worker may die at any point: the
 * record says by a lease whether somebody is at work, and by which message. A job that was left half done is run again
 * under the same id and time, so that it makes the same files; once a tool of a server may have been called, it is not.
 */

export type WorkContext = RunContext & {
  readonly store: ObjectStore;
  /** With the time that an asynchronous job has. */
  readonly limits: Limits;
  /** How long nobody else works on a job that was taken, ms; longer than a worker can live. */
  readonly leaseMs: number;
  /**
   * The queue hands a message out again only when whoever had it is dead, so that its lease need not be waited for. SQS
   * now and then hands one message to two at once.
   */
  readonly redeliveryIsDeath: boolean;
};

/** One after another: they share a processor. */
export async function takeJobs(messages: readonly ReceivedMessage[], context: WorkContext): Promise<FailedMessages> {
  const failed = new Map<string, Fault>();
  for (const message of messages) {
    const { id } = message;
    const taken = await takeMessage(message, { ...context, log: withFields(context.log, { message_id: id }) });
    if (!taken.ok) failed.set(id, taken.fault);
  }
  return failed;
}

async function takeMessage(message: ReceivedMessage, context: WorkContext): Promise<Outcome<null>> {
  const read = readJobMessage(message.body);
  if (!read.ok) return read;
  const { owner, job_id: jobId } = read.value;
  try {
    return await takeJob({ owner, jobId, message }, context);
  } catch (error) {
    return refuse("DEFECT", `job ${jobId} failed`, { cause: error });
  }
}

type Told = { readonly owner: string; readonly jobId: string; readonly message: ReceivedMessage };

async function takeJob({ owner, jobId, message }: Told, context: WorkContext): Promise<Outcome<null>> {
  const { store, clock, leaseMs, log } = context;
  const now = clock();
  const until = new Date(now + leaseMs).toISOString();
  const lease = { message_id: message.id, receive_count: message.receiveCount, until };
  const taken = await changeJob({ store, clock, owner, jobId }, (record) =>
    isEnded(record) || isBusy(record, message, context)
      ? undefined
      : { ...record, status: "running", lease, attempts: (record.attempts ?? 0) + 1 },
  );
  if (taken === undefined) {
    log("warn", "job of a message is not there", { job_id: jobId });
    return succeed(null);
  }
  if (taken.changed) return workOrLetGo(taken, context);
  if (isEnded(taken.record)) {
    // Whoever ended it may have died before this.
    await deleteRequest(store, owner, jobId);
    return succeed(null);
  }
  // Whoever holds the job has a message of its own, which comes again when it dies.
  if (taken.record.lease?.message_id !== message.id) return succeed(null);
  return refuse("JOB_HELD", `job ${jobId} is held by another worker until ${taken.record.lease.until}`);
}

function isBusy(
  record: JobRecord,
  { id, receiveCount }: ReceivedMessage,
  { clock, redeliveryIsDeath }: WorkContext,
): boolean {
  const { lease } = record;
  const isHoldersOwn = lease !== undefined && lease.message_id === id && receiveCount > lease.receive_count;
  return isHeld(record, clock()) && !(redeliveryIsDeath && isHoldersOwn);
}

type Taken = StoredJob;

/** Whoever gets the message next need not wait for the end of a lease that nobody uses. */
async function workOrLetGo(taken: Taken, context: WorkContext): Promise<Outcome<null>> {
  try {
    return await work(taken, context);
  } catch (error) {
    await letGo(taken, context);
    throw error;
  }
}

async function letGo({ record }: Taken, { store, clock }: WorkContext): Promise<void> {
  const { owner, job_id: jobId, attempts } = record;
  const free = changeJob({ store, clock, owner, jobId }, ({ lease: _, ...current }) =>
    current.status === "running" && current.attempts === attempts ? current : undefined,
  );
  // The lease ends by itself; that it could not be ended sooner must not hide what went wrong.
  await free.catch(() => undefined);
}

async function work(begun: Taken, context: WorkContext): Promise<Outcome<null>> {
  const { owner, job_id: jobId } = begun.record;
  if (begun.record.called_servers === true) return fail(begun, interrupted(), context);
  const request = await getRequest(context.store, owner, jobId);
  if (request === undefined) return fail(begun, new Fault("DEFECT", "what the job was to do is gone"), context);
  const planned = planJob(request, context);
  if (!planned.ok) return fail(begun, planned.fault, context);
  const plan = planned.value;
  const { store, clock, catalog } = context;
  const taken = callsServers(plan) ? await markCalled(begun, store) : begun;
  if (taken === undefined) return drop(begun, context);
  const startedAt = clock();
  const job = { owner, jobId, createdAt: Date.parse(taken.record.created_at), startedAt };
  const ran = await runCalls({ ...job, plan }, context, () => isUnchanged(store, taken.record, taken.etag));
  if (ran === "stopped") return drop(taken, context);
  const made = makeJob({ ...job, finishedAt: clock(), ran, limits: plan.limits, catalog });
  if (!made.ok) return fail(taken, made.fault, context);
  await putFiles(made.value, store);
  return keep(taken, made.value, context);
}

/**
 * Written before the first call, so that nobody makes it a second time. Undefined when the job is somebody else's by
 * now.
 */
async function markCalled({ record, etag }: Taken, store: ObjectStore): Promise<Taken | undefined> {
  const called = { ...record, called_servers: true };
  const marked = await replaceJob(store, called, etag);
  return marked === undefined ? undefined : { record: called, etag: marked };
}

async function keep(taken: Taken, made: MadeJob, context: WorkContext): Promise<Outcome<null>> {
  const { attempts, sent_at } = taken.record;
  const record = { ...made.record, attempts, sent_at };
  if ((await replaceJob(context.store, record, taken.etag)) === undefined) return drop(taken, context, made);
  return end(record, context);
}

async function fail(taken: Taken, fault: Fault, context: WorkContext): Promise<Outcome<null>> {
  const record = toFailedRecord(taken.record, fault, context.clock());
  if ((await replaceJob(context.store, record, taken.etag)) === undefined) return drop(taken, context);
  return end(record, context);
}

async function end(record: JobRecord, { store, log }: WorkContext): Promise<Outcome<null>> {
  logJob(record, "async", log);
  await deleteRequest(store, record.owner, record.job_id);
  return succeed(null);
}

/**
 * Somebody else wrote the record: the job was cancelled, or another worker has it. Files of a cancelled job go; those
 * of another worker have the same keys and are its own.
 */
async function drop({ record }: Taken, { store, log }: WorkContext, made?: MadeJob): Promise<Outcome<null>> {
  const { owner, job_id: jobId } = record;
  const current = (await getJob(store, owner, jobId))?.record;
  log("info", "job is no longer this worker's", { job_id: jobId, status: current?.status });
  if (current?.error?.code === "JOB_CANCELLED") {
    await Promise.all((made?.files ?? []).map(({ record: { key } }) => store.delete(key)));
  }
  return succeed(null);
}
