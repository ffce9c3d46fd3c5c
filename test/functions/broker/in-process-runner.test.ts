import { describe, expect, test } from "vitest";
import { createInProcessRunner } from "../../../functions/broker/in-process-runner.ts";
import type { Handler, HandlerCall } from "../../../functions/contract/ports.ts";
import { createManualClock } from "../../kit/manual-clock.ts";
import { CONTRACT_HANDLERS } from "../../ports/contract-handlers.ts";
import { describeHandlerRunner } from "../../ports/handler-runner-contract.ts";

describeHandlerRunner("the in-process runner", {
  open: async () => ({
    runner: createInProcessRunner(CONTRACT_HANDLERS, Date.now),
    now: Date.now,
    close: async () => undefined,
  }),
});

describe("the in-process runner, to the millisecond", () => {
  const clock = createManualClock(1000);
  const call: HandlerCall = { handler: "work", arguments: {}, skill: undefined, now: 0 };

  function runnerOf(work: Handler) {
    return createInProcessRunner(new Map([["work", work]]), clock.now);
  }

  test("says that it cannot stop a handler", () => {
    expect(runnerOf(() => ({})).interrupts).toBe(false);
  });

  test.each([
    [9, true],
    [10, false],
    [11, false],
  ])("of 10 ms a handler that took %i is in time: %s", async (took, inTime) => {
    const runner = runnerOf(() => {
      clock.advance(took);
      return { done: true };
    });
    const outcome = await runner.run(call, { deadline: clock.now() + 10 });
    if (inTime) expect(outcome).toEqual({ ok: true, value: { done: true } });
    else expect(outcome).toFail("CALL_TIMEOUT");
  });

  test("does not begin a handler at its deadline", async () => {
    let begun = 0;
    const runner = runnerOf(() => {
      begun += 1;
      return {};
    });
    expect(await runner.run(call, { deadline: clock.now() })).toFail("CALL_TIMEOUT");
    expect(begun).toBe(0);
    await runner.run(call, { deadline: clock.now() + 1 });
    expect(begun).toBe(1);
  });

  test("lets lateness outweigh what a late handler threw", async () => {
    const runner = runnerOf(() => {
      clock.advance(20);
      throw new TypeError("late and broken");
    });
    expect(await runner.run(call, { deadline: clock.now() + 10 })).toFail("CALL_TIMEOUT");
  });
});
