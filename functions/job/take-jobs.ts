import { Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { JobRecord } from "../contract/job.ts";
import type { Limits } from "../contract/limits.ts";
import { withFields } from "../contract/log-fields.ts";
import type { FailedMessages, ObjectStore, ReceivedMessage } from "../contract/ports.ts";
import { changeJob } from "./change-job.ts";
import { isEnded, isHeld, toFailedRecord } from "./job-record.ts";
import { deleteRequest, getJob, getRequest, isUnchanged, replaceJob } from "./job-store.ts";
import { logJob, type MadeJob, makeJob, putFiles } from "./keep-job.ts";
import { callsServers, planJob } from "./plan-job.ts";
import { readJobMessage } from "./read-job-message.ts";
import { type RunContext, runCalls } from "./run-calls.ts";
import { interrupted } from "./run-job.ts";

/**
 * From the jobs queue to a job that has ended. A message may come twice, and its worker may die at any point: the record
 * says by a lease whether somebody is at work. A job that was left half done is run again under the same id and time, so
 * that it makes the same files; one that calls tools of servers is not, since a call might be done twice.
 */

export type WorkContext = RunContext & {
  readonly store: ObjectStore;
  /** With the time that an asynchronous job has. */
  readonly limits: Limits;
  /** How long nobody else works on a job that was taken, ms; longer than a worker can live. */
  readonly leaseMs: number;
};

/** One after another: they share a processor. */
export async function takeJobs(messages: readonly ReceivedMessage[], context: WorkContext): Promise<FailedMessages> {
  const failed = new Map<string, Fault>();
  for (const { id, body } of messages) {
    const taken = await takeMessage(body, { ...context, log: withFields(context.log, { message_id: id }) });
    if (!taken.ok) failed.set(id, taken.fault);
  }
  return failed;
}

async function takeMessage(body: string, context: WorkContext): Promise<Outcome<null>> {
  const message = readJobMessage(body);
  if (!message.ok) return message;
  const { owner, job_id: jobId } = message.value;
  try {
    return await takeJob({ owner, jobId }, context);
  } catch (error) {
    return refuse("DEFECT", `job ${jobId} failed`, { cause: error });
  }
}

type JobName = { readonly owner: string; readonly jobId: string };

async function takeJob(name: JobName, context: WorkContext): Promise<Outcome<null>> {
  const { store, clock, leaseMs, log } = context;
  const now = clock();
  const lease_until = new Date(now + leaseMs).toISOString();
  const taken = await changeJob({ store, ...name }, (record) =>
    isEnded(record) || isHeld(record, now)
      ? undefined
      : { ...record, status: "running", lease_until, attempts: (record.attempts ?? 0) + 1 },
  );
  if (taken === undefined) {
    log("warn", "job of a message is not there", { job_id: name.jobId });
    return succeed(null);
  }
  if (taken.changed) return workOrLetGo(taken, context);
  if (isEnded(taken.record)) return succeed(null);
  const message = `job ${name.jobId} is held by another worker until ${taken.record.lease_until}`;
  return refuse("IDEMPOTENCY_IN_PROGRESS", message);
}

type Taken = { readonly record: JobRecord; readonly etag: string };

/** Whoever gets the message next need not wait for the end of a lease that nobody uses. */
async function workOrLetGo(taken: Taken, context: WorkContext): Promise<Outcome<null>> {
  try {
    return await work(taken, context);
  } catch (error) {
    const { lease_until: _, ...free } = taken.record;
    await replaceJob(context.store, free, taken.etag).catch(() => undefined);
    throw error;
  }
}

async function work(taken: Taken, context: WorkContext): Promise<Outcome<null>> {
  const { owner, job_id: jobId } = taken.record;
  const request = await getRequest(context.store, owner, jobId);
  if (request === undefined) return fail(taken, new Fault("DEFECT", "what the job was to do is gone"), context);
  const planned = planJob(request, context);
  if (!planned.ok) return fail(taken, planned.fault, context);
  const plan = planned.value;
  const again = (taken.record.attempts ?? 1) > 1;
  if (again && callsServers(plan)) return fail(taken, interrupted(), context);
  const { store, clock, catalog } = context;
  const startedAt = clock();
  const job = { owner, jobId, createdAt: Date.parse(taken.record.created_at), startedAt };
  const ran = await runCalls({ ...job, plan }, context, () => isUnchanged(store, taken.record, taken.etag));
  if (ran === undefined) return drop(taken, context);
  const made = makeJob({ ...job, finishedAt: clock(), ran, limits: plan.limits, catalog });
  if (!made.ok) return fail(taken, made.fault, context);
  await putFiles(made.value, store);
  return keep(taken, made.value, context);
}

async function keep(taken: Taken, made: MadeJob, context: WorkContext): Promise<Outcome<null>> {
  const record = { ...made.record, attempts: taken.record.attempts };
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
 * Somebody else wrote the record: the job was cancelled, or another worker has it. Files of a cancelled job go, unless its
 * record names them; those of another worker have the same keys and are its own.
 */
async function drop({ record }: Taken, { store, log }: WorkContext, made?: MadeJob): Promise<Outcome<null>> {
  const { owner, job_id: jobId } = record;
  const current = (await getJob(store, owner, jobId))?.record;
  log("info", "job was ended by others", { job_id: jobId, status: current?.status });
  if (current?.error?.code === "JOB_CANCELLED") {
    await Promise.all((made?.files ?? []).map(({ record: { key } }) => store.delete(key)));
  }
  return succeed(null);
}
