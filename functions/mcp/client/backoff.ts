/** Ever longer pauses between attempts, so that a server that is down is not held down by those who want it back. */

export type BackoffLimits = { readonly firstDelayMs: number; readonly longestDelayMs: number };

export type Backoff = {
  /** Milliseconds to the next attempt: twice as many each time, of which up to half are left to chance. */
  next(): number;
  /** The attempt was a success. */
  reset(): void;
};

/** `random` is at least 0 and below 1; without it, all who lost one server would come back at one moment. */
export function createBackoff({ firstDelayMs, longestDelayMs }: BackoffLimits, random: () => number): Backoff {
  let delayMs = firstDelayMs;
  return {
    next: () => {
      const chosen = delayMs * (0.5 + random() / 2);
      delayMs = Math.min(delayMs * 2, longestDelayMs);
      return chosen;
    },
    reset: () => {
      delayMs = firstDelayMs;
    },
  };
}
