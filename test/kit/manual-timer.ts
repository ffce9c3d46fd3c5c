import type { Clock, Timer } from "../../functions/contract/ports.ts";

/** A timer whose time passes when a test says so, and the clock that goes with it. */
export type ManualTimer = {
  readonly timer: Timer;
  readonly now: Clock;
  /** Acts that fall due act in the order of their times, each at its time; those that they set too. */
  advance(milliseconds: number): void;
  /** Milliseconds until each pending act, in ascending order. */
  pending(): readonly number[];
};

export function createManualTimer(startMs = 0): ManualTimer {
  let now = startMs;
  const waiting = new Set<{ readonly at: number; readonly act: () => void }>();
  const inOrder = () => [...waiting].toSorted((a, b) => a.at - b.at);
  return {
    timer: (act, milliseconds) => {
      const entry = { at: now + milliseconds, act };
      waiting.add(entry);
      return { cancel: () => void waiting.delete(entry) };
    },
    now: () => now,
    advance: (milliseconds) => {
      const end = now + milliseconds;
      for (let next = inOrder()[0]; next !== undefined && next.at <= end; next = inOrder()[0]) {
        waiting.delete(next);
        now = Math.max(now, next.at);
        next.act();
      }
      now = end;
    },
    pending: () => inOrder().map(({ at }) => at - now),
  };
}
