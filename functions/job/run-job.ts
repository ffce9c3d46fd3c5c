import type { ArgumentChecker } from "../broker/argument-schema.ts";
import { admitByOperator, type CallOutcome, ToolBroker } from "../broker/broker.ts";
import type { Catalog } from "../catalog/catalog.ts";
import {
  Fault,
  type FaultCode,
  type Outcome,
  refuse,
  succeed,
  toWireFault,
  type Violation,
} from "../contract/fault.ts";
import type { ArtifactRecord, CallAudit, CallResult, JobRecord, JobRequest } from "../contract/job.ts";
import { type Limits, narrowLimits } from "../contract/limits.ts";
import type { Clock, HandlerRunner, Log, ObjectStore, RandomBytes } from "../contract/ports.ts";
import { parseToolRef, type ToolRef } from "../contract/tool.ts";
import { createJobId } from "./ids.ts";
import { artifactKey, MAX_RECORD_BYTES, putArtifact, putNewJob, recordByteCount } from "./job-store.ts";

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

type NamedCall = { readonly id: string; readonly ref: ToolRef; readonly arguments: Readonly<Record<string, unknown>> };
type Plan = { readonly calls: readonly NamedCall[]; readonly limits: Limits; readonly allowed: ReadonlySet<ToolRef> };
type Ran = { readonly call: NamedCall; readonly ran: CallOutcome };

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
  const ran: Ran[] = [];
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
  job: Omit<Finished, "artifacts" | "finishedAt">,
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

function planJob(request: JobRequest, { catalog, limits: operator }: JobContext): Outcome<Plan> {
  const limits = narrowLimits(operator, request.limits ?? {});
  if (!limits.ok) return limits;
  const calls = nameCalls(request);
  if (calls.length > operator.max_calls) {
    const message = `at most ${operator.max_calls} calls a job, got ${calls.length}`;
    return refuse("REQUEST_INVALID", message, { violations: [{ path: "/calls", message }] });
  }
  const violations = findIdTwins(calls);
  if (violations.length > 0) return refuse("REQUEST_INVALID", "call ids must differ", { violations });
  const allowed = allowedRefs(request, calls, catalog);
  return allowed.ok ? succeed({ calls, limits: limits.value, allowed: allowed.value }) : allowed;
}

/** c1, c2, … where no id is given; one that the caller gave to another call is passed over. */
function nameCalls({ calls }: JobRequest): readonly NamedCall[] {
  const given = new Set(calls.flatMap(({ id }) => id ?? []));
  const freeId = (number: number): string => (given.has(`c${number}`) ? freeId(number + calls.length) : `c${number}`);
  return calls.map((call, index) => ({ id: call.id ?? freeId(index + 1), ref: call.tool, arguments: call.arguments }));
}

function findIdTwins(calls: readonly NamedCall[]): readonly Violation[] {
  const first = new Map<string, number>();
  return calls.flatMap(({ id }, index) => {
    const twin = first.get(id);
    first.set(id, twin ?? index);
    return twin === undefined
      ? []
      : [{ path: `/calls/${index}/id`, message: `"${id}" is already the id of call ${twin + 1}` }];
  });
}

/** What the job allows: the refs it lists and its skills' tool sets; left out, what its calls name. */
function allowedRefs(
  request: JobRequest,
  calls: readonly NamedCall[],
  catalog: Catalog,
): Outcome<ReadonlySet<ToolRef>> {
  const { allowed_tools: tools, allowed_skills: skills } = request;
  if (tools === undefined && skills === undefined) return succeed(new Set(calls.map(({ ref }) => ref)));
  const allowed = new Set(tools ?? []);
  const refused = findRefused(
    tools ?? [],
    (index) => `/allowed_tools/${index}`,
    (ref) => admitByOperator(ref, { tools: catalog.tools, operatorPolicy: catalog.policy }),
  );
  if (refused !== undefined) return { ok: false, fault: refused };
  try {
    for (const name of skills ?? []) for (const ref of skillRefs(name, catalog)) allowed.add(ref);
  } catch (error) {
    if (error instanceof Fault) return { ok: false, fault: error };
    throw error;
  }
  return succeed(allowed);
}

/** A callable skill allows itself and its tool set. */
function skillRefs(name: string, { skills }: Catalog): readonly ToolRef[] {
  const own = skills.get(name).callable?.ref;
  const named = skills.resolve(name).uses.flatMap(({ ref }) => parseToolRef(ref) ?? []);
  return own === undefined ? named : [own, ...named];
}

/** The first refused ref decides the code; every refused one is listed under the pointer that `pathOf` gives. */
function findRefused(
  refs: readonly ToolRef[],
  pathOf: (index: number) => string,
  admit: (ref: ToolRef) => Outcome<unknown>,
): Fault | undefined {
  const refused = refs.flatMap((ref, index) => {
    const admitted = admit(ref);
    return admitted.ok ? [] : [{ path: pathOf(index), fault: admitted.fault }];
  });
  const [first] = refused;
  if (first === undefined) return undefined;
  const violations = refused.map(({ path, fault }) => ({ path, message: fault.message }));
  return new Fault(first.fault.code, first.fault.message, { violations });
}

function findRefusedCall(calls: readonly NamedCall[], broker: ToolBroker): Fault | undefined {
  const refs = calls.map(({ ref }) => ref);
  return findRefused(
    refs,
    (index) => `/calls/${index}/tool`,
    (ref) => broker.admit(ref),
  );
}

function findRefusedInput(ran: readonly Ran[]): Fault | undefined {
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

function logDefects(ran: readonly Ran[], jobId: string, log: Log): void {
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
  ran: readonly Ran[],
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

type Finished = {
  readonly owner: string;
  readonly jobId: string;
  readonly createdAt: number;
  readonly finishedAt: number;
  readonly ran: readonly Ran[];
  readonly artifacts: readonly ArtifactRecord[];
  readonly limits: Limits;
  readonly catalog: Catalog;
};

function toRecord({ owner, jobId, createdAt, finishedAt, ran, artifacts, limits, catalog }: Finished): JobRecord {
  const succeeded = ran.filter(({ ran: { outcome } }) => outcome.ok).length;
  const audit = ran.map((each) => toAudit(each));
  return {
    version: 1,
    job_id: jobId,
    owner,
    status: succeeded === ran.length ? "succeeded" : succeeded === 0 ? "failed" : "partial",
    created_at: new Date(createdAt).toISOString(),
    finished_at: new Date(finishedAt).toISOString(),
    results: ran.map((each) => toResult(each, artifacts)),
    artifacts: [...artifacts],
    usage: {
      calls: ran.length,
      duration_ms: Math.max(0, Math.round(finishedAt - createdAt)),
      output_bytes: audit.reduce((sum, { output_bytes }) => sum + output_bytes, 0),
      artifact_bytes: audit.reduce((sum, { artifact_bytes }) => sum + artifact_bytes, 0),
    },
    catalog_generation: catalog.generation,
    link_seconds: limits.link_seconds,
    audit,
  };
}

function toResult({ call, ran: { outcome } }: Ran, artifacts: readonly ArtifactRecord[]): CallResult {
  const named = { call_id: call.id, tool: call.ref };
  if (!outcome.ok) {
    const { code, message, errors } = toWireFault(outcome.fault);
    return { ...named, ok: false, error: { code, message, ...(errors === undefined ? {} : { errors: [...errors] }) } };
  }
  const artifact = artifacts.find(({ call_id }) => call_id === call.id);
  const lifted = artifact === undefined ? {} : { artifact_id: artifact.artifact_id };
  return { ...named, ok: true, output: { ...outcome.value.output, ...lifted } };
}

function toAudit({ call, ran }: Ran): CallAudit {
  const { outcome } = ran;
  return {
    call_id: call.id,
    ref: call.ref,
    definition_digest: ran.definitionDigest,
    arguments_digest: ran.argumentsDigest,
    outcome: outcome.ok ? "ok" : outcome.fault.code,
    duration_ms: ran.durationMs,
    output_bytes: outcome.ok ? outcome.value.outputBytes : 0,
    artifact_bytes: outcome.ok ? (outcome.value.artifact?.bytes.length ?? 0) : 0,
  };
}
