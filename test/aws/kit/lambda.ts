import type { FunctionError } from "./function-error.ts";
import { type Environment, type FunctionSetup, type Stream, startEnvironment } from "./runtime-api.ts";

/**
 * A function as its callers see it: as many environments as there are invocations at once, each of them kept for the
 * next.
 */

export type Invoked =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: FunctionError };

export type Lambda = {
  readonly setup: FunctionSetup;
  /** Synchronous, without a retry. Never rejects for what the function does. */
  invoke(event: unknown): Promise<Invoked>;
  /** Environments started since the beginning. */
  coldStarts(): number;
  /** Process ids of those that would take the next invocation. */
  idlePids(): readonly number[];
  /** What the function wrote so far, over all environments. */
  lines(stream?: Stream): readonly string[];
  /** Errors of the invocations that failed so far. */
  failures(): readonly FunctionError[];
  /** Kills every environment that is at work, in the midst of it. How many there were. */
  kill(): Promise<number>;
  /** Ends what is not at work, as Lambda does after a while. */
  retire(): Promise<void>;
  close(): Promise<void>;
};

/** Lambda's limit for a synchronous event. */
const MAX_EVENT_BYTES = 6_291_456;

export function createLambda(setup: FunctionSetup): Lambda {
  const written: { readonly line: string; readonly stream: Stream }[] = [];
  const idle: Environment[] = [];
  const busy = new Set<Environment>();
  const failures: FunctionError[] = [];
  let started = 0;
  const take = async (): Promise<Environment> => {
    const warm = idle.pop();
    if (warm !== undefined) return warm.hasEnded() ? take() : warm;
    started += 1;
    return startEnvironment({ setup, onLine: (line, stream) => written.push({ line, stream }) });
  };
  return {
    setup,
    coldStarts: () => started,
    idlePids: () => idle.flatMap(({ pid }) => pid ?? []),
    lines: (wanted = "stdout") => written.flatMap(({ line, stream }) => (stream === wanted ? line : [])),
    failures: () => failures,
    kill: async () => {
      const working = [...busy];
      await Promise.all(working.map((environment) => environment.kill()));
      return working.length;
    },
    retire: async () => {
      await Promise.all(idle.splice(0).map((environment) => environment.kill()));
    },
    close: async () => {
      await Promise.all([...idle, ...busy].map((environment) => environment.kill()));
    },
    invoke: async (event) => {
      const payload = JSON.stringify(event);
      if (Buffer.byteLength(payload) > MAX_EVENT_BYTES) return { ok: false, error: TOO_LARGE };
      const environment = await take();
      busy.add(environment);
      const outcome = await environment.invoke(payload);
      busy.delete(environment);
      if (!environment.hasEnded()) idle.push(environment);
      if (outcome.ok) return { ok: true, value: JSON.parse(outcome.payload) };
      failures.push(outcome.error);
      return outcome;
    },
  };
}

const TOO_LARGE: FunctionError = {
  errorType: "RequestEntityTooLargeException",
  errorMessage: `Request must be smaller than ${MAX_EVENT_BYTES} bytes for the InvokeFunction operation`,
};
