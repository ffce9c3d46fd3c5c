import { Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { JobRecord } from "../contract/job.ts";
import type { Clock, FailedMessages, Log, ObjectStore, ReceivedMessage } from "../contract/ports.ts";
import { changeJob } from "./change-job.ts";
import { isEnded, isHeld, toFailedRecord } from "./job-record.ts";
import { deleteRequest } from "./job-store.ts";
import { readJobMessage } from "./read-job-message.ts";

/** From the dead letters of the jobs queue to jobs that say why they never ended. */

export type GiveUpContext = {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly log: Log;
  /** How often a job is handed to a worker before its message is dead. */
  readonly maxAttempts: number;
};

/** A message that names no job is done with: it was nobody's job. */
export async function giveUpJobs(
  messages: readonly ReceivedMessage[],
  context: GiveUpContext,
): Promise<FailedMessages> {
  const outcomes = await Promise.all(
    messages.map(async (message) => ({ id: message.id, outcome: await giveUp(message, context) })),
  );
  return new Map(outcomes.flatMap(({ id, outcome }) => (outcome.ok ? [] : [[id, outcome.fault] as const])));
}

async function giveUp(
  { id, body }: ReceivedMessage,
  { store, clock, log, maxAttempts }: GiveUpContext,
): Promise<Outcome<null>> {
  const message = readJobMessage(body);
  if (!message.ok) {
    log("error", "dead letter names no job", { code: message.fault.code });
    return succeed(null);
  }
  const { owner, job_id: jobId } = message.value;
  const text = `the job was handed to a worker ${maxAttempts} times and never ended; post it again, with a new key if it had one`;
  try {
    const now = clock();
    const job = await changeJob({ store, clock, owner, jobId }, (record) =>
      isEnded(record) || isHeldByOthers(record, id, now)
        ? undefined
        : toFailedRecord(record, new Fault("JOB_INTERRUPTED", text), now),
    );
    if (job === undefined) return succeed(null);
    if (!isEnded(job.record)) return refuse("JOB_HELD", `job ${jobId} is still held by a worker`);
    if (job.changed) log("error", "job given up", { job_id: jobId, code: "JOB_INTERRUPTED" });
    await deleteRequest(store, owner, jobId);
    return succeed(null);
  } catch (error) {
    return refuse("DEFECT", `job ${jobId} could not be given up`, { cause: error });
  }
}

/**
 * A message dies only when it could be handed out once more, and so after the worker that had it: that lease is void.
 */
function isHeldByOthers(record: JobRecord, id: string, now: number): boolean {
  return isHeld(record, now) && record.lease?.message_id !== id;
}
