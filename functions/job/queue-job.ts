import type { JobSubmission } from "../contract/api.ts";
import { type Outcome, succeed } from "../contract/fault.ts";
import type { JobMessage, JobRecord, JobRequest } from "../contract/job.ts";
import type { EventQueue, Log } from "../contract/ports.ts";
import { type ClaimContext, claimKey, type HeldKey } from "./idempotency.ts";
import { createJobId } from "./ids.ts";
import { isEnded, type JobIdentity, toQueuedRecord } from "./job-record.ts";
import { deleteRequest, getJob, putNewJob, putRequest } from "./job-store.ts";
import { type PlanContext, planJob } from "./plan-job.ts";

/**
 * Takes a job in to be run later: admitted whole, as one that is run at once is. The request is stored first, then the
 * record, then the message, so that a worker never finds less than it needs. Should this die before the message is sent,
 * its caller has no answer, a repeat with the same key sends it again, and without a key the record is shown as failed
 * once it has waited longer than any message can.
 */

export type QueueContext = ClaimContext &
  PlanContext & {
    readonly jobs: EventQueue;
    readonly log: Log;
  };

/** The queued job; with a key that was used before, that job as it is now. Refusals are those of a job that is run at once. */
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
  if ("held" in claimed.value) return queueHeld(submission.request, claimed.value.held, context);
  const { record } = claimed.value.job;
  // Whoever queued it may have died before it sent the message; one message more does no harm.
  if (record.status === "queued") await send(record, context);
  return succeed(record);
}

async function queueHeld(request: JobRequest, held: HeldKey, context: QueueContext): Promise<Outcome<JobRecord>> {
  try {
    const queued = await queue(held.job, request, context);
    if (!queued.ok) await held.release();
    return queued;
  } catch (error) {
    // The lease ends by itself; that it could not be ended sooner must not hide what went wrong.
    await held.giveUp().catch(() => undefined);
    throw error;
  }
}

async function queue(job: JobIdentity, request: JobRequest, context: QueueContext): Promise<Outcome<JobRecord>> {
  const { store, catalog, log } = context;
  const planned = planJob(request, context);
  if (!planned.ok) return planned;
  await putRequest(store, job.owner, job.jobId, request);
  const record = toQueuedRecord({ ...job, limits: planned.value.limits, catalog });
  const isNew = (await putNewJob(store, record)) !== undefined;
  const current = isNew ? record : (await getJob(store, job.owner, job.jobId))?.record;
  if (current?.status === "queued") {
    await send(current, context);
    log("info", "job queued", { job_id: current.job_id });
  }
  // Another one queued it while this one was taken for dead, and it has ended: nobody needs the request any more.
  else if (current !== undefined && isEnded(current)) await deleteRequest(store, job.owner, job.jobId);
  return succeed(current ?? record);
}

async function send({ owner, job_id }: JobRecord, { jobs }: QueueContext): Promise<void> {
  const message: JobMessage = { owner, job_id };
  await jobs.send({ body: JSON.stringify(message) });
}
