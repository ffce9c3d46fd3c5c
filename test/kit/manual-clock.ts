import type { Clock } from "../../functions/contract/ports.ts";

/** A clock that stands still until a test moves it. */
export type ManualClock = { readonly now: Clock; advance(ms: number): void };

/** `startMs` in epoch milliseconds. */
export function createManualClock(startMs: number): ManualClock {
  let current = startMs;
  return {
    now: () => current,
    advance: (ms) => {
      current += ms;
    },
  };
}
