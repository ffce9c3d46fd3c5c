import type { ArgumentChecker } from "../broker/argument-schema.ts";
import { ToolBroker } from "../broker/broker.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Artifact } from "../contract/artifact.ts";
import { Fault, type FaultCode, type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { ArtifactRecord, JobRecord, JobRequest } from "../contract/job.ts";
import type { Limits } from "../contract/limits.ts";
import type { Clock, HandlerRunner, Log, ObjectStore, RandomBytes, ToolSession } from "../contract/ports.ts";
import { createJobId } from "./ids.ts";
import { argumentPath, type FinishedJob, type RanCall, toRecord } from "./job-record.ts";
import { answerByteCount, artifactKey, MAX_ANSWER_BYTES, putArtifact, putNewJob } from "./job-store.ts";
import { findRefusedCall, type Plan, planJob, toOperatorGate } from "./plan-job.ts";

/**
 * Runs a job: admits it whole, runs its calls in order through one broker, stores what they made, then the record.
 * The record is written last, so a crash in the middle leaves files that nothing refers to and that expire, never a
 * record of files that are not there.
 */

export type JobContext = {
  readonly catalog: Catalog;
  readonly store: ObjectStore;
  readonly runner: HandlerRunner;
  /** A new one for each job; it connects at the first call of a lent tool. */
  readonly openSession: () => ToolSession;
  readonly checkArguments: ArgumentChecker;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Log;
};

/** Input was refused before or by the handler: nothing was done, so a job of nothing else is refused as a whole. */
const INPUT_FAULTS: ReadonlySet<FaultCode> = new Set(["TOOL_INPUT_INVALID", "PAYLOAD_TOO_LARGE"]);

/**
 * The record of the job that ran. A fault when it was refused before anything ran (a ref unknown, not approved or not
 * allowed; limits raised; call ids twice; too many calls) or when every single call's input was refused.
 */
export async function runJob(owner: string, request: JobRequest, context: JobContext): Promise<Outcome<JobRecord>> {
  const planned = planJob(request, context);
  if (!planned.ok) return planned;
  const { calls, limits } = planned.value;
  const createdAt = context.clock();
  const jobId = createJobId(createdAt, context.randomBytes);
  const session = context.openSession();
  const broker = createBroker(planned.value, { createdAt, session }, context);
  const refused = findRefusedCall(calls, broker);
  if (refused !== undefined) return { ok: false, fault: refused };
  const ran: RanCall[] = [];
  try {
    for (const call of calls) ran.push({ call, ran: await broker.call({ ref: call.ref, arguments: call.arguments }) });
  } finally {
    await session.close();
  }
  const unusable = findRefusedInput(ran);
  if (unusable !== undefined) return { ok: false, fault: unusable };
  logDefects(ran, jobId, context.log);
  const finished = { owner, jobId, createdAt, finishedAt: context.clock(), ran, limits, catalog: context.catalog };
  return keepJob(finished, context.store);
}

function createBroker(
  { allowed, limits }: Plan,
  running: { readonly createdAt: number; readonly session: ToolSession },
  context: JobContext,
): ToolBroker {
  const { catalog, runner, checkArguments, clock } = context;
  const jobPolicy = { allowed, limits };
  return new ToolBroker({ ...toOperatorGate(catalog), jobPolicy, runner, checkArguments, clock, ...running });
}

/** Files first, then the record; nothing when the report could not be answered. */
async function keepJob(job: FinishedJob, store: ObjectStore): Promise<Outcome<JobRecord>> {
  const made = nameArtifacts(job);
  const record = toRecord(
    job,
    made.map(({ record }) => record),
  );
  const bytes = answerByteCount(record);
  if (bytes > MAX_ANSWER_BYTES) {
    const message = `the job's report has ${bytes} bytes, at most ${MAX_ANSWER_BYTES} fit an answer; make fewer calls`;
    return refuse("OUTPUT_TOO_LARGE", message);
  }
  await Promise.all(made.map(({ record: { key }, artifact }) => putArtifact(store, key, artifact)));
  await putNewJob(store, record);
  return succeed(record);
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

function logDefects(ran: readonly RanCall[], jobId: string, log: Log): void {
  for (const {
    call,
    ran: { outcome },
  } of ran) {
    if (outcome.ok || outcome.fault.remedy === "caller") continue;
    const { code, cause, message } = outcome.fault;
    const level = outcome.fault.remedy === "us" ? "error" : "warn";
    log(level, "call failed", { job_id: jobId, call_id: call.id, ref: call.ref, code, reason: message, cause });
  }
}

type MadeArtifact = { readonly record: ArtifactRecord; readonly artifact: Artifact };

/** a1, a2, … in the order of the calls. */
function nameArtifacts({ owner, jobId, ran }: FinishedJob): readonly MadeArtifact[] {
  const made = ran.flatMap(({ call, ran: { outcome } }) =>
    outcome.ok ? outcome.value.artifacts.map((artifact) => ({ call, artifact })) : [],
  );
  return made.map(({ call, artifact }, index) => {
    const { name, mediaType, bytes, sha256 } = artifact;
    const artifact_id = `a${index + 1}`;
    const key = artifactKey(owner, jobId, artifact_id, mediaType);
    const facts = { name, media_type: mediaType, size_bytes: bytes.length, sha256 };
    return { record: { artifact_id, call_id: call.id, ...facts, key }, artifact };
  });
}
