import { Fault } from "../../functions/contract/fault.ts";
import type { Timer } from "../../functions/contract/ports.ts";
import { createBackoff } from "../../functions/mcp/client/backoff.ts";

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
  const backoff = createBackoff({ firstDelayMs: firstPauseMs, longestDelayMs: longestPauseMs }, random);
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (error instanceof Fault && error.remedy === "caller") throw error;
      onFailure(error instanceof Error ? error.message : "failed");
    }
    await new Promise<void>((done) => void timer(done, backoff.next()));
  }
}
