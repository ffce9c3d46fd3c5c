import { expect } from "vitest";
import { Fault, type FaultCode } from "../../functions/contract/fault.ts";

/**
 * `toFail(code)` for the three ways in which a fault reaches a test: an outcome that refuses, a fault that a promise
 * was rejected with (`await expect(promise).rejects.toFail(code)`), and a function that throws. Import for its effect.
 */

declare module "vitest" {
  interface Matchers<R, T> {
    toFail(code: FaultCode): R;
  }
}

expect.extend({
  toFail(received: unknown, code: FaultCode) {
    const found = toFault(received);
    const got = found?.code ?? describe(received).slice(0, 300);
    return { pass: got === code, message: () => `fault ${code} ${this.isNot ? "not " : ""}expected, got ${got}` };
  },
});

function toFault(received: unknown): Fault | undefined {
  if (received instanceof Fault) return received;
  if (typeof received === "function") return toFault(thrownBy(() => received()));
  if (typeof received === "object" && received !== null && "fault" in received) return toFault(received.fault);
  return undefined;
}

function thrownBy(act: () => unknown): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
}

function describe(received: unknown): string {
  return received instanceof Error ? `${received.name}: ${received.message}` : JSON.stringify(received);
}
