import { once } from "node:events";
import type { Clock, Timer } from "../../contract/ports.ts";

/** The longest that a timer of Node can wait; a longer one would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** A moment, and the signal that aborts at it or when the work is given up before. */
export type Deadline = { readonly signal: AbortSignal; remainingMs(): number };

export type DeadlineOptions = {
  readonly clock: Clock;
  /** A signal that aborts after so many milliseconds, which are at most 2,147,483,647. */
  readonly abortAfter: (milliseconds: number) => AbortSignal;
  /** Aborts when the work is given up. */
  readonly givenUp?: AbortSignal;
};

/** `deadline` in epoch ms; past already, the signal is aborted from the start. */
export function startDeadline(deadline: number, { clock, abortAfter, givenUp }: DeadlineOptions): Deadline {
  const remainingMs = () => Math.min(Math.max(Math.ceil(deadline - clock()), 0), MAX_TIMER_MS);
  const milliseconds = remainingMs();
  const due = milliseconds === 0 ? AbortSignal.abort() : abortAfter(milliseconds);
  return { signal: givenUp === undefined ? due : AbortSignal.any([due, givenUp]), remainingMs };
}

/** Undefined when the signal aborts first; the work goes on then, and what becomes of it is not looked at. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) {
    work.catch(() => undefined);
    return undefined;
  }
  const settled = new AbortController();
  const aborted = once(signal, "abort", { signal: settled.signal }).then(
    () => undefined,
    () => undefined,
  );
  try {
    return await Promise.race([work, aborted]);
  } finally {
    work.catch(() => undefined);
    settled.abort();
  }
}

export type RestOptions = { readonly timer: Timer; readonly milliseconds: number; readonly signal: AbortSignal };

/** Resolves after so many milliseconds, or at once when the signal aborts. */
export async function rest({ timer, milliseconds, signal }: RestOptions): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { cancel } = timer(resolve, milliseconds);
  await unlessAborted(promise, signal);
  cancel();
}
