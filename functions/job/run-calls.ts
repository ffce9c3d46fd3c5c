import type { ArgumentChecker } from "../broker/argument-schema.ts";
import { ToolBroker } from "../broker/broker.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Fault } from "../contract/fault.ts";
import type { Clock, HandlerRunner, Log, ToolSession } from "../contract/ports.ts";
import type { JobIdentity, RanCall } from "./job-record.ts";
import { type Plan, toOperatorGate } from "./plan-job.ts";

/** The calls of a plan, in order, through one broker. */

export type RunContext = {
  readonly catalog: Catalog;
  readonly runner: HandlerRunner;
  /** A new one for each job; it connects at the first call of a lent tool. */
  readonly openSession: () => ToolSession;
  readonly checkArguments: ArgumentChecker;
  readonly clock: Clock;
  readonly log: Log;
};

export type PlannedJob = JobIdentity & { readonly plan: Plan; readonly startedAt: number };

/** `goOn` is asked before every call but the first; once it says no, no further call is begun. */
export async function runCalls(
  job: PlannedJob,
  context: RunContext,
  goOn: () => Promise<boolean>,
): Promise<readonly RanCall[] | "stopped"> {
  const session = context.openSession();
  const broker = createBroker(job, session, context);
  const ran: RanCall[] = [];
  try {
    for (const call of job.plan.calls) {
      if (ran.length > 0 && !(await goOn())) return "stopped";
      const each = { call, ran: await broker.call({ ref: call.ref, arguments: call.arguments }) };
      // At once: what a server was asked to do is to be found, whatever becomes of the job.
      logCall(each, job.jobId, context.log);
      ran.push(each);
    }
  } finally {
    await session.close();
  }
  return ran;
}

function createBroker(job: PlannedJob, session: ToolSession, context: RunContext): ToolBroker {
  const { catalog, runner, checkArguments, clock } = context;
  const { plan, createdAt, startedAt } = job;
  const running = { runner, checkArguments, clock, session, createdAt, startedAt };
  return new ToolBroker({ ...toOperatorGate(catalog), jobPolicy: plan, ...running });
}

function logCall({ call, ran: { outcome, durationMs } }: RanCall, jobId: string, log: Log): void {
  const fields = { job_id: jobId, call_id: call.id, ref: call.ref, duration_ms: durationMs };
  const { level, reason } = outcome.ok ? { level: "info" as const, reason: {} } : explain(outcome.fault);
  log(level, "call", { ...fields, ...reason });
}

/** Loud by who can put it right. What the caller did wrong is told to the caller. */
function explain({ code, message, cause, remedy }: Fault) {
  if (remedy === "caller") return { level: "info", reason: { code } } as const;
  return { level: remedy === "us" ? "error" : "warn", reason: { code, reason: message, cause } } as const;
}
