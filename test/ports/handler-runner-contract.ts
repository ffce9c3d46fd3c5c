import { describe, expect, test } from "vitest";
import type { Clock, HandlerCall, HandlerRunner } from "../../functions/contract/ports.ts";
import type { CallableSkill } from "../../functions/contract/skill.ts";
import { parseToolRef } from "../../functions/contract/tool.ts";
import "../kit/to-fail.ts";
import { SECRET } from "./contract-handlers.ts";

/** What every runner of handlers must do, whether it can stop one or only wait for it. */

export type OpenedRunner = {
  readonly runner: HandlerRunner;
  /** The clock that deadlines are told by. */
  readonly now: Clock;
  close(): Promise<void>;
};

export type HandlerRunnerSubject = {
  /** A runner whose table is that of `contract-handlers.ts`, and whose clock is the real one. */
  open(): Promise<OpenedRunner>;
};

/** Longer than the deadlines that are meant to be overrun, short enough to wait for. */
const SPIN_MS = 60;
const NOW = Date.UTC(2027, 0, 31, 12);

function toCall(handler: string, given: HandlerCall["arguments"] = {}): HandlerCall {
  return { handler, arguments: given, skill: undefined, now: NOW };
}

function toSkill(templates: ReadonlyMap<string, string>): CallableSkill {
  const ref = parseToolRef("contract_skill@1");
  if (ref === undefined) throw new Error("the ref does not parse");
  return { ref, id: "contract_skill", version: "1", handler: "template", inputSchema: { type: "object" }, templates };
}

export function describeHandlerRunner(name: string, subject: HandlerRunnerSubject): void {
  describe(`${name} as a runner of handlers`, () => {
    async function using(prove: (the: OpenedRunner) => Promise<void>): Promise<void> {
      const opened = await subject.open();
      try {
        await prove(opened);
      } finally {
        await opened.close();
      }
    }

    const later = (now: Clock) => ({ deadline: now() + 60_000 });

    test("answers with what the handler answered", () =>
      using(async ({ runner, now }) => {
        const outcome = await runner.run(toCall("echo", { title: "é\u0000\ud83d\ude80", list: [1, null] }), later(now));
        expect(outcome).toEqual({
          ok: true,
          value: { title: "é\u0000\ud83d\ude80", list: [1, null], now: NOW, skill: null },
        });
      }));

    test("hands the skill and its templates to the handler", () =>
      using(async ({ runner, now }) => {
        const call = { ...toCall("template"), skill: toSkill(new Map([["main", "Hello {{name}}"]])) };
        expect(await runner.run(call, later(now))).toEqual({ ok: true, value: { text: "Hello {{name}}" } });
      }));

    test("turns refused arguments into a value, with every violation", () =>
      using(async ({ runner, now }) => {
        const outcome = await runner.run(toCall("refuse"), later(now));
        expect(outcome).toFail("TOOL_INPUT_INVALID");
        expect(outcome).toMatchObject({ fault: { violations: [{ path: "/title", message: "is empty" }] } });
      }));

    test("hands on a fault that a handler knows the remedy for", () =>
      using(async ({ runner, now }) => {
        const outcome = await runner.run(toCall("unavailable"), later(now));
        expect(outcome).toFail("TOOL_UNAVAILABLE");
        expect(outcome).toMatchObject({ fault: { message: "the skill's template cannot be used" } });
      }));

    test.each(["break", "throw-text"])("turns any other throw into a defect without its text (%s)", (handler) =>
      using(async ({ runner, now }) => {
        const outcome = await runner.run(toCall(handler), later(now));
        expect(outcome).toFail("DEFECT");
        expect(outcome.ok ? "" : outcome.fault.message).not.toContain(SECRET);
        expect(outcome.ok ? "" : outcome.fault.cause).toBeDefined();
      }),
    );

    test.each(["no_such_handler", "__proto__", "constructor", "toString", ""])(
      "has no handler that is not in the table (%s)",
      (handler) =>
        using(async ({ runner, now }) => {
          expect(await runner.run(toCall(handler), later(now))).toFail("TOOL_UNAVAILABLE");
        }),
    );

    test("works on after a call that failed", () =>
      using(async ({ runner, now }) => {
        await runner.run(toCall("break"), later(now));
        expect(await runner.run(toCall("echo"), later(now))).toMatchObject({ ok: true });
      }));

    test.each([0, -1, -60_000])("does not begin a call whose deadline is %i ms from now", (left) =>
      using(async ({ runner, now }) => {
        const given = { list: [] };
        const outcome = await runner.run(toCall("mutate", given), { deadline: now() + left });
        expect(outcome).toFail("CALL_TIMEOUT");
        expect(given).toEqual({ list: [] });
        const begun = Date.now();
        expect(await runner.run(toCall("spin", { ms: 10_000 }), { deadline: now() + left })).toFail("CALL_TIMEOUT");
        expect(Date.now() - begun).toBeLessThan(5000);
      }),
    );

    test("refuses the answer of a handler that overran its deadline", () =>
      using(async ({ runner, now }) => {
        expect(await runner.run(toCall("spin", { ms: SPIN_MS }), { deadline: now() + 5 })).toFail("CALL_TIMEOUT");
      }));

    test("settles when the work has ended, and not before", () =>
      using(async ({ runner, now }) => {
        const begun = Date.now();
        await runner.run(toCall("spin", { ms: runner.interrupts ? 60_000 : SPIN_MS }), { deadline: now() + 5 });
        const took = Date.now() - begun;
        if (runner.interrupts) expect(took).toBeLessThan(30_000);
        else expect(took).toBeGreaterThanOrEqual(SPIN_MS);
      }));

    test("works on after a call that overran", () =>
      using(async ({ runner, now }) => {
        await runner.run(toCall("spin", { ms: SPIN_MS }), { deadline: now() + 5 });
        expect(await runner.run(toCall("echo", { again: true }), later(now))).toMatchObject({ value: { again: true } });
      }));

    test("keeps the caller's arguments as they were, whatever the handler does to its own", () =>
      using(async ({ runner, now }) => {
        const given = { list: ["first"] };
        for (let round = 0; round < 2; round += 1) {
          const outcome = await runner.run(toCall("mutate", given), later(now));
          expect(outcome).toEqual({ ok: true, value: { list: ["first", "mutated"] } });
          expect(given).toEqual({ list: ["first"] });
        }
      }));

    test("gives calls at the same time each its own answer", () =>
      using(async ({ runner, now }) => {
        const numbers = Array.from({ length: 20 }, (_, index) => index);
        const outcomes = await Promise.all(numbers.map((index) => runner.run(toCall("echo", { index }), later(now))));
        expect(outcomes.map((outcome) => (outcome.ok ? outcome.value.index : outcome.fault.code))).toEqual(numbers);
      }));

    test.each(["answer-function", "answer-promise"])(
      "takes an answer that is no plain data for a defect (%s)",
      (handler) =>
        using(async ({ runner, now }) => {
          expect(await runner.run(toCall(handler), later(now))).toFail("DEFECT");
        }),
    );

    test("takes and gives plain data only", () =>
      using(async ({ runner, now }) => {
        const call = { ...toCall("echo", { list: [{ deep: true }] }), skill: toSkill(new Map()) };
        const outcome = await runner.run(structuredClone(call), later(now));
        expect(outcome.ok).toBe(true);
        expect(structuredClone(outcome)).toEqual(outcome);
      }));
  });
}
