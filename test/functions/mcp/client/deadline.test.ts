import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { rest, startDeadline, unlessAborted } from "../../../../functions/mcp/client/deadline.ts";
import { createManualClock } from "../../../kit/manual-clock.ts";
import { createManualTimer } from "../../../kit/manual-timer.ts";

describe("a deadline", () => {
  /** The deadline at `at`, and the milliseconds for which a signal was asked. */
  function start(at: number, givenUp?: AbortSignal) {
    const clock = createManualClock(1_000);
    const asked: number[] = [];
    const due = new AbortController();
    const abortAfter = (milliseconds: number) => {
      asked.push(milliseconds);
      return due.signal;
    };
    const options = { clock: clock.now, abortAfter, ...(givenUp === undefined ? {} : { givenUp }) };
    return { clock, asked, due, deadline: startDeadline(at, options) };
  }

  test("aborts after what is left until it", () => {
    const { asked, due, deadline, clock } = start(1_500);
    expect([asked, deadline.signal.aborted, deadline.remainingMs()]).toEqual([[500], false, 500]);
    clock.advance(200);
    expect(deadline.remainingMs()).toBe(300);
    due.abort();
    expect(deadline.signal.aborted).toBe(true);
  });

  test.each([1_000, 999, -5])("at %i, which is past, has aborted from the start", (at) => {
    const { asked, deadline } = start(at);
    expect([asked, deadline.signal.aborted, deadline.remainingMs()]).toEqual([[], true, 0]);
  });

  test("farther away than a timer reaches is not one that is due at once", () => {
    expect(start(1_000 + 2_147_483_647).asked).toEqual([2_147_483_647]);
    expect(start(Number.MAX_SAFE_INTEGER).asked).toEqual([2_147_483_647]);
  });

  test("aborts as well when the work is given up", () => {
    const life = new AbortController();
    const { deadline } = start(1_500, life.signal);
    life.abort();
    expect(deadline.signal.aborted).toBe(true);
  });
});

describe("waiting", () => {
  test("ends with the work, or with the signal, whichever is first", async () => {
    const { signal } = new AbortController();
    expect(await unlessAborted(Promise.resolve(1), signal)).toBe(1);
    await expect(unlessAborted(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
    const controller = new AbortController();
    const waiting = unlessAborted(new Promise(() => undefined), controller.signal);
    controller.abort();
    expect(await waiting).toBeUndefined();
    expect(await unlessAborted(Promise.reject(new Error("no")), controller.signal)).toBeUndefined();
  });

  test("leaves nothing behind on a signal that lives on", async () => {
    const { signal } = new AbortController();
    for (let count = 0; count < 20; count += 1) await unlessAborted(Promise.resolve(count), signal);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("for a time leaves no timer behind when it is given up", async () => {
    const { timer, pending, advance } = createManualTimer();
    const controller = new AbortController();
    const resting = rest({ timer, milliseconds: 100, signal: controller.signal });
    expect(pending()).toEqual([100]);
    controller.abort();
    await resting;
    expect(pending()).toEqual([]);
    const slept = rest({ timer, milliseconds: 100, signal: new AbortController().signal });
    advance(100);
    await slept;
  });
});
