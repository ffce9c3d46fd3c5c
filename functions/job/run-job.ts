import type { ArgumentChecker } from "../broker/argument-schema.ts";
import { ToolBroker } from "../broker/broker.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { Fault, type FaultCode, type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { ArtifactRecord, JobRecord, JobRequest } from "../contract/job.ts";
import type { Limits } from "../contract/limits.ts";
import type { Clock, HandlerRunner, Log, ObjectStore, RandomBytes } from "../contract/ports.ts";
import { createJobId } from "./ids.ts";
import { type FinishedJob, type RanCall, toRecord } from "./job-record.ts";
import { artifactKey, MAX_RECORD_BYTES, putArtifact, putNewJob, recordByteCount } from "./job-store.ts";
import { findRefusedCall, type Plan, planJob } from "./plan-job.ts";

/**
 * Runs a job: admits it whole, runs its calls in order through one broker, stores what they made, then the record.
 * The record is written last, so a crash in the middle leaves files that nothing refers to and that expire, never a
 * record of files that are not there.
 */

export type JobContext = {
  readonly catalog: Catalog;
  readonly store: ObjectStore;
  readonly runner: HandlerRunner;
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
  const jobId = createJobId(context.clock, context.randomBytes);
  const broker = createBroker(planned.value, createdAt, context);
  const refused = findRefusedCall(calls, broker);
  if (refused !== undefined) return { ok: false, fault: refused };
  const ran: RanCall[] = [];
  for (const call of calls) ran.push({ call, ran: await broker.call({ ref: call.ref, arguments: call.arguments }) });
  const unusable = findRefusedInput(ran);
  if (unusable !== undefined) return { ok: false, fault: unusable };
  logDefects(ran, jobId, context.log);
  return keepJob({ owner, jobId, createdAt, ran, limits, catalog: context.catalog }, context);
}

function createBroker({ allowed, limits }: Plan, createdAt: number, context: JobContext): ToolBroker {
  const { catalog, runner, checkArguments, clock } = context;
  const policies = { operatorPolicy: catalog.policy, jobPolicy: { allowed, limits } };
  return new ToolBroker({ tools: catalog.tools, ...policies, runner, checkArguments, clock, createdAt });
}

/** Files first, then the record. */
async function keepJob(
  job: Omit<FinishedJob, "artifacts" | "finishedAt">,
  { store, clock }: JobContext,
): Promise<Outcome<JobRecord>> {
  const artifacts = await storeArtifacts(job.ran, { owner: job.owner, jobId: job.jobId, store });
  const record = toRecord({ ...job, artifacts, finishedAt: clock() });
  const bytes = recordByteCount(record);
  if (bytes > MAX_RECORD_BYTES) {
    const message = `the job's report has ${bytes} bytes, at most ${MAX_RECORD_BYTES} fit; make fewer calls`;
    return refuse("OUTPUT_TOO_LARGE", message);
  }
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
    const prefix = `/calls/${index}/arguments`;
    if (fault.violations.length === 0) return [{ path: prefix, message: fault.message }];
    return fault.violations.map(({ path, message }) => ({ path: prefix + path, message }));
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

type Destination = { readonly owner: string; readonly jobId: string; readonly store: ObjectStore };

async function storeArtifacts(
  ran: readonly RanCall[],
  { owner, jobId, store }: Destination,
): Promise<readonly ArtifactRecord[]> {
  const made = ran.flatMap(({ call, ran: { outcome } }) =>
    outcome.ok && outcome.value.artifact !== undefined ? [{ call, artifact: outcome.value.artifact }] : [],
  );
  return Promise.all(
    made.map(async ({ call, artifact }, index) => {
      const artifactId = `a${index + 1}`;
      const key = artifactKey(owner, jobId, artifactId, artifact.mediaType);
      await putArtifact(store, key, artifact);
      const { name, mediaType, bytes, sha256 } = artifact;
      const facts = { name, media_type: mediaType, size_bytes: bytes.length, sha256 };
      return { artifact_id: artifactId, call_id: call.id, ...facts, key };
    }),
  );
}
