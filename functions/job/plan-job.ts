import { admitByJob, admitByOperator, type OperatorGate } from "../broker/broker.ts";
import { type Catalog, findSkill, refusedRepositories } from "../catalog/catalog.ts";
import { Fault, type Outcome, refuse, succeed, type Violation } from "../contract/fault.ts";
import type { JobRequest } from "../contract/job.ts";
import { type Limits, narrowLimits } from "../contract/limits.ts";
import { parseMcpToolName } from "../contract/offered-tool.ts";
import type { JsonObject, ToolRef } from "../contract/tool.ts";

/** Everything about a job that can be refused before any of it runs. */

export type NamedCall = { readonly id: string; readonly ref: ToolRef; readonly arguments: JsonObject };
export type Plan = {
  readonly calls: readonly NamedCall[];
  readonly limits: Limits;
  readonly allowed: ReadonlySet<ToolRef>;
};

export type PlanContext = { readonly catalog: Catalog; readonly limits: Limits };

/**
 * What is to be run, or why the job is refused: limits raised, too many calls, an id twice, a ref that may not be
 * called.
 */
export function planJob(request: JobRequest, { catalog, limits: operator }: PlanContext): Outcome<Plan> {
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
  if (!allowed.ok) return allowed;
  const refused = findRefusedCall(calls, { gate: toOperatorGate(catalog), allowed: allowed.value });
  if (refused !== undefined) return { ok: false, fault: refused };
  return succeed({ calls, limits: limits.value, allowed: allowed.value });
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
    (ref) => admitByOperator(ref, toOperatorGate(catalog)),
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

function skillRefs(name: string, catalog: Catalog): readonly ToolRef[] {
  return catalog.served.get(findSkill(name, catalog).name) ?? [];
}

/** What the operator's half of the broker's gate goes by. */
export function toOperatorGate(catalog: Catalog): OperatorGate {
  const { tools, policy, lookup } = catalog;
  return { tools, operatorPolicy: policy, refusedRepositories: refusedRepositories(catalog), lookUpLent: lookup };
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

/** The fault of a job that names a call which the broker would not admit. */
function findRefusedCall(calls: readonly NamedCall[], admission: Parameters<typeof admitByJob>[1]): Fault | undefined {
  const refs = calls.map(({ ref }) => ref);
  return findRefused(
    refs,
    (index) => `/calls/${index}/tool`,
    (ref) => admitByJob(ref, admission),
  );
}

/** Whether a call goes to a server. Nobody can tell whether such a call was done, once whoever made it is gone. */
export function callsServers({ calls }: Plan): boolean {
  return calls.some(({ ref }) => parseMcpToolName(ref) !== undefined);
}
