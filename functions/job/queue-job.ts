import type { JobSubmission } from "../contract/api.ts";
import { type Outcome, succeed } from "../contract/fault.ts";
import type { JobMessage, JobRecord, JobRequest } from "../contract/job.ts";
import type { EventQueue, Log } from "../contract/ports.ts";
import { changeJob } from "./change-job.ts";
import { underKey } from "./hold-key.ts";
import { type ClaimContext, claimKey } from "./idempotency.ts";
import { createJobId } from "./ids.ts";
import { isEnded, type JobIdentity, toQueuedRecord } from "./job-record.ts";
import { deleteRequest, keepFirstJob, putRequest } from "./job-store.ts";
import { type PlanContext, planJob } from "./plan-job.ts";

/**
 * Takes a job in to be run later: admitted whole, as one that is run at once is. The request is stored first, then the
 * record, then the message, so that a worker never finds less than it needs. Should this die before the message is
 * sent, its caller got no answer. Another asynchronous request with the same key sends the message; without one the
 * record is shown as failed once no message of it can be left.
 */

export type QueueContext = ClaimContext &
  PlanContext & {
    readonly jobs: EventQueue;
    readonly log: Log;
  };

/**
 * The queued job; with a key that was used before, that job as it is now. Refused is what is refused before a job that
 * is run at once would begin; bad arguments are told by the report.
 */
export async function queueJob(submission: JobSubmission, context: QueueContext): Promise<Outcome<JobRecord>> {
  const { owner, request, idempotencyKey: key } = submission;
  if (key !== undefined) return queueOnce({ ...submission, key }, context);
  const now = context.clock();
  return queue({ owner, jobId: createJobId(now, context.randomBytes), createdAt: now }, request, context);
}

async function queueOnce(
  submission: JobSubmission & { readonly key: string },
  context: QueueContext,
): Promise<Outcome<JobRecord>> {
  const claimed = await claimKey(submission, context);
  if (!claimed.ok) return claimed;
  if ("job" in claimed.value) return succeed(await sendAgain(claimed.value.job, context));
  const { held } = claimed.value;
  return underKey(held, context, () => queue(held.job, submission.request, context));
}

/** Whoever queued it may have died before it sent the message, which takes no longer than a lease. */
async function sendAgain(record: JobRecord, context: QueueContext): Promise<JobRecord> {
  const { store, clock, leaseMs } = context;
  const { owner, job_id: jobId } = record;
  const now = clock();
  const isOnItsWay = ({ sent_at }: JobRecord) => sent_at !== undefined && Date.parse(sent_at) + leaseMs > now;
  const marked = await changeJob({ store, clock, owner, jobId }, (current) =>
    current.status !== "queued" || isOnItsWay(current)
      ? undefined
      : { ...current, sent_at: new Date(now).toISOString() },
  );
  if (marked?.changed === true) await send(marked.record, context);
  return marked?.record ?? record;
}

/** For a message that could not be sent: whoever asks again need not wait to send it. */
async function markUnsent({ owner, job_id: jobId }: JobRecord, { store, clock }: QueueContext): Promise<void> {
  const unsent = changeJob({ store, clock, owner, jobId }, ({ sent_at: _, ...current }) =>
    current.status === "queued" ? current : undefined,
  );
  await unsent.catch(() => undefined);
}

async function queue(job: JobIdentity, request: JobRequest, context: QueueContext): Promise<Outcome<JobRecord>> {
  const { store, catalog, clock, log } = context;
  const planned = planJob(request, context);
  if (!planned.ok) return planned;
  await putRequest(store, job.owner, job.jobId, request);
  const sent_at = new Date(clock()).toISOString();
  const record = { ...toQueuedRecord({ ...job, limits: planned.value.limits, catalog }), sent_at };
  const { record: current } = await keepFirstJob(store, record);
  if (current.status === "queued") {
    await send(current, context);
    log("info", "job queued", { job_id: current.job_id });
  }
  // Another one queued it while this one was taken for dead, and it has ended: nobody needs the request any more.
  else if (isEnded(current)) await deleteRequest(store, job.owner, job.jobId);
  return succeed(current);
}

async function send(record: JobRecord, context: QueueContext): Promise<void> {
  const message: JobMessage = { owner: record.owner, job_id: record.job_id };
  try {
    await context.jobs.send({ body: JSON.stringify(message) });
  } catch (error) {
    await markUnsent(record, context);
    throw error;
  }
}
