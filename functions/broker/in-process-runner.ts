import { Fault, type Outcome, refuse, succeed } from "../contract/fault.ts";
import type { Clock, Handler, HandlerCall, HandlerRunner } from "../contract/ports.ts";
import type { JsonObject } from "../contract/tool.ts";

/**
 * Runs handlers on the calling thread. It cannot stop one: no timer interrupts synchronous code, so a handler is
 * bounded by the limits on its input, and one that overran has its answer refused after it ended. It says so by
 * `interrupts: false`.
 */
export function createInProcessRunner(handlers: ReadonlyMap<string, Handler>, clock: Clock): HandlerRunner {
  return {
    interrupts: false,
    run: async (call, { deadline }) => {
      if (clock() >= deadline) return timedOut("the time was used up before the call began");
      const outcome = runNow(handlers, call);
      return clock() >= deadline ? timedOut("the call ended after its deadline") : outcome;
    },
  };
}

/** Both ways by copy, as to another thread: a handler that changes its arguments must not change the caller's. */
function runNow(handlers: ReadonlyMap<string, Handler>, { handler: name, ...input }: HandlerCall): Outcome<JsonObject> {
  const handler = handlers.get(name);
  if (handler === undefined) return refuse("TOOL_UNAVAILABLE", `handler "${name}" is not in the table`);
  try {
    return succeed(structuredClone(handler({ ...input, arguments: structuredClone(input.arguments) })));
  } catch (error) {
    if (error instanceof Fault) return { ok: false, fault: error };
    return refuse("DEFECT", `handler "${name}" failed`, { cause: error });
  }
}

function timedOut(reason: string): Outcome<JsonObject> {
  return refuse("CALL_TIMEOUT", `${reason}; allow more time or send less`);
}
