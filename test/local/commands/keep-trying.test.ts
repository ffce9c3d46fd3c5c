import { describe, expect, test } from "vitest";
import { Fault } from "../../../functions/contract/fault.ts";
import { keepTrying } from "../../../local/commands/keep-trying.ts";

/** Goes on at once, and remembers for how long it should have waited. */
function world(random = 1) {
  const pauses: number[] = [];
  const reasons: string[] = [];
  const options = {
    timer: (act: () => void, milliseconds: number) => {
      pauses.push(milliseconds);
      queueMicrotask(act);
      return { cancel: () => undefined };
    },
    random: () => random,
    onFailure: (reason: string) => void reasons.push(reason),
  };
  return { pauses, reasons, options };
}

function failing(times: number, error: Error): () => Promise<string> {
  let left = times;
  return async () => {
    left -= 1;
    if (left >= 0) throw error;
    return "done";
  };
}

describe("what is tried until it succeeds", () => {
  test("pauses ever longer, a minute at most, and tells each failure", async () => {
    const { pauses, reasons, options } = world();
    expect(await keepTrying(failing(8, new Fault("SERVER_UNAVAILABLE", "down")), options)).toBe("done");
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    expect(reasons).toEqual(Array(8).fill("down"));
  });

  test("never pauses less than half of that, so that many do not come back together", async () => {
    const { pauses, options } = world(0);
    await keepTrying(failing(1, new Error("cut")), options);
    expect(pauses).toEqual([500]);
  });

  test("ends where the caller itself must change something", async () => {
    const { pauses, options } = world();
    const refused = new Fault("REQUEST_INVALID", "no such server");
    await expect(keepTrying(failing(1, refused), options)).rejects.toBe(refused);
    expect(pauses).toEqual([]);
  });
});
