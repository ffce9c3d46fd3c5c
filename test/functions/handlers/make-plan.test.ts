import { describe, expect, test } from "vitest";
import { makePlan } from "../../../functions/handlers/make-plan.ts";
import { callHandler, refusalsOf } from "./call-handler.ts";

const pathsOf = (given: Readonly<Record<string, unknown>>) => refusalsOf(makePlan, given).map(({ path }) => path);

describe("make_plan", () => {
  test("numbers the steps under the goal, in the answer and in the file", () => {
    const { output, text, name, mediaType } = callHandler(makePlan, { goal: "Ship it", steps: ["Build", "Test"] });
    expect(output).toEqual({ plan: "Plan: Ship it\n\n1. Build\n2. Test", step_count: 2 });
    expect({ text, name, mediaType }).toEqual({ text: output.plan, name: "plan.txt", mediaType: "text/plain" });
  });

  test("collapses white space of every kind, so that a step cannot fake another", () => {
    const steps = [
      "a\n2. fake step",
      "  b\u2003c\u00a0d ",
      "e\u0000f",
      "g\u001ch\u001di\u001ej\u001fk",
      "l\u0085m\u2028n\ufeffo",
    ];
    expect(callHandler(makePlan, { goal: "Ship\nit", steps }).text).toBe(
      "Plan: Ship it\n\n1. a 2. fake step\n2. b c d\n3. ef\n4. g h i j k\n5. l m no",
    );
  });

  test.each(["", " ", "\u200b", "\u001c\u001f", "\u0000", "\u2800", "\ufeff\u3000"])(
    "refuses a step that is only %j",
    (step) => {
      expect(pathsOf({ goal: "g", steps: ["a", step] })).toEqual(["/steps/1"]);
      expect(pathsOf({ goal: step, steps: ["a"] })).toEqual(["/goal"]);
    },
  );

  test("takes 1 to 20 steps", () => {
    const steps = (count: number) => ({ goal: "g", steps: Array.from({ length: count }, (_, index) => `s${index}`) });
    expect(callHandler(makePlan, steps(20)).output).toMatchObject({ step_count: 20 });
    expect(pathsOf(steps(21))).toEqual(["/steps"]);
    expect(pathsOf(steps(0))).toEqual(["/steps"]);
  });

  test("takes 400 characters a text, however many bytes they have", () => {
    const long = "😀".repeat(400);
    expect(callHandler(makePlan, { goal: long, steps: [long] }).output).toMatchObject({ step_count: 1 });
    expect(pathsOf({ goal: "g", steps: ["a", "b".repeat(401)] })).toEqual(["/steps/1"]);
    expect(pathsOf({ goal: "b".repeat(401), steps: ["a"] })).toEqual(["/goal"]);
  });

  test.each([
    [{ goal: "g", steps: "a" }, ["/steps"]],
    [{ goal: "g", steps: [1] }, ["/steps/0"]],
    [{ goal: "g", steps: [null] }, ["/steps/0"]],
    [{ goal: null, steps: ["a"] }, ["/goal"]],
    [{ goal: "g", steps: ["a"], stpes: 1, extra: 2 }, ["/extra", "/stpes"]],
  ])("refuses %j", (given, paths) => {
    expect(pathsOf(given)).toEqual(paths);
  });
});
