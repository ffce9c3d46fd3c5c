import { Fault } from "../../functions/contract/fault.ts";
import type { Timer } from "../../functions/contract/ports.ts";

export type KeepTryingOptions = {
  readonly timer: Timer;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Told of each failure that is followed by another try. */
  readonly onFailure: (reason: string) => void;
  readonly firstPauseMs?: number;
  readonly longestPauseMs?: number;
};

/**
 * Until it succeeds, with ever longer pauses: what was told once may never be told again. Rejects only where no try can
 * ever succeed, because the caller itself must change something.
 */
export async function keepTrying<T>(act: () => Promise<T>, options: KeepTryingOptions): Promise<T> {
  const { timer, random, onFailure, firstPauseMs = 1_000, longestPauseMs = 60_000 } = options;
  for (let pause = firstPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
    try {
      return await act();
    } catch (error) {
      if (error instanceof Fault && error.remedy === "caller") throw error;
      onFailure(error instanceof Error ? error.message : "failed");
    }
    // Several watchers that failed together do not come back together.
    const waited = pause * (0.5 + random() / 2);
    await new Promise<void>((done) => void timer(done, waited));
  }
}
