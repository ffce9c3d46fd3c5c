import type { JobSubmission } from "../contract/api.ts";
import { Fault, type FaultCode, type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { JobRecord } from "../contract/job.ts";
import type { Limits } from "../contract/limits.ts";
import type { ObjectStore, RandomBytes } from "../contract/ports.ts";
import { underKey } from "./hold-key.ts";
import { claimKey, type HeldKey } from "./idempotency.ts";
import { createJobId } from "./ids.ts";
import { argumentPath, isEnded, type JobIdentity, type RanCall } from "./job-record.ts";
import { keepFirstJob, putNewJob } from "./job-store.ts";
import { logJob, makeJob, putFiles } from "./keep-job.ts";
import { callsServers, type Plan, planJob } from "./plan-job.ts";
import { type RunContext, runCalls } from "./run-calls.ts";

/**
 * Runs a job while its caller waits: admits it whole, runs its calls, stores what they made, then the record. The
 * record is written last, so a crash in the middle leaves files that nothing refers to and that expire, never a record
 * of files that are not there.
 */

export type JobContext = RunContext & {
  readonly store: ObjectStore;
  readonly limits: Limits;
  readonly randomBytes: RandomBytes;
  /** How long a job holds its `Idempotency-Key`, ms. */
  readonly leaseMs: number;
};

/** Input was refused before or by the handler: nothing was done, so a job of nothing else is refused as a whole. */
const INPUT_FAULTS: ReadonlySet<FaultCode> = new Set(["TOOL_INPUT_INVALID", "PAYLOAD_TOO_LARGE"]);

/**
 * The record of the job that ran, now or before under the same key. A fault when it was refused before anything ran (a
 * ref unknown, not approved or not allowed; limits raised; call ids twice; too many calls), when every single call's
 * input was refused, or when the key is another job's or its job has not ended.
 */
export async function runJob(submission: JobSubmission, context: JobContext): Promise<Outcome<JobRecord>> {
  const { owner, request, idempotencyKey: key } = submission;
  if (key !== undefined) return runOnce({ ...submission, key }, context);
  const planned = planJob(request, context);
  if (!planned.ok) return planned;
  const now = context.clock();
  const ran = await run(
    { owner, jobId: createJobId(now, context.randomBytes), createdAt: now },
    planned.value,
    context,
  );
  if (!ran.ok) return ran;
  if ((await putNewJob(context.store, ran.value)) === undefined) throw new Fault("DEFECT", "two jobs have one id");
  logJob(ran.value, "sync", context.log);
  return ran;
}

type KeyedSubmission = JobSubmission & { readonly key: string };

async function runOnce(submission: KeyedSubmission, context: JobContext): Promise<Outcome<JobRecord>> {
  const claimed = await claimKey(submission, context);
  if (!claimed.ok) return claimed;
  if ("job" in claimed.value) return toEnded(claimed.value.job);
  const { held } = claimed.value;
  const ran = await underKey(held, context, () => runHeld(submission, held, context));
  return ran.ok ? toEnded(ran.value) : ran;
}

/** An asynchronous job may have had the key first. */
function toEnded(record: JobRecord): Outcome<JobRecord> {
  if (isEnded(record)) return succeed(record);
  const message = `job ${record.job_id} of this Idempotency-Key is ${record.status}; GET /v1/jobs/${record.job_id}`;
  return refuse("IDEMPOTENCY_IN_PROGRESS", message);
}

async function runHeld({ request }: KeyedSubmission, held: HeldKey, context: JobContext): Promise<Outcome<JobRecord>> {
  const planned = planJob(request, context);
  if (!planned.ok) return planned;
  if (callsServers(planned.value) && !(await held.callServers())) {
    return refuse("IDEMPOTENCY_IN_PROGRESS", "another request took over this Idempotency-Key; ask again for its job");
  }
  const ran = await run(held.job, planned.value, context);
  if (!ran.ok) return ran;
  const { record, isNew } = await keepFirstJob(context.store, ran.value);
  if (isNew) logJob(record, "sync", context.log);
  return succeed(record);
}

/**
 * The files are stored, the record is not. Throws `REQUEST_TIMEOUT` once the lease is over, the job's key may be
 * somebody else's and its caller was told so: a function that answered in time is frozen, and goes on with the next
 * request.
 */
async function run(job: JobIdentity, plan: Plan, context: JobContext): Promise<Outcome<JobRecord>> {
  const { catalog, clock, store, leaseMs } = context;
  const startedAt = clock();
  const isInTime = () => clock() < startedAt + leaseMs;
  const ran = await runCalls({ ...job, plan, startedAt }, context, async () => isInTime());
  if (ran === "stopped" || !isInTime()) throw tooLate();
  const unusable = findRefusedInput(ran);
  if (unusable !== undefined) return { ok: false, fault: unusable };
  const made = makeJob({ ...job, startedAt, finishedAt: clock(), ran, limits: plan.limits, catalog });
  if (!made.ok) return made;
  await putFiles(made.value, store);
  if (!isInTime()) throw tooLate();
  return succeed(made.value.record);
}

function tooLate(): Fault {
  return new Fault("REQUEST_TIMEOUT", "the job's time was over before its record could be written");
}

function findRefusedInput(ran: readonly RanCall[]): Fault | undefined {
  const faults = ran.flatMap(({ ran: { outcome } }) =>
    outcome.ok || !INPUT_FAULTS.has(outcome.fault.code) ? [] : [outcome.fault],
  );
  const [first] = faults;
  if (first === undefined || faults.length < ran.length) return undefined;
  const violations = faults.flatMap((fault, index) => {
    if (fault.violations.length === 0) return [{ path: argumentPath(index, ""), message: fault.message }];
    return fault.violations.map(({ path, message }) => ({ path: argumentPath(index, path), message }));
  });
  return new Fault(first.code, first.message, { violations, cause: first });
}
