import * as z from "zod";
import type { Handler } from "../contract/ports.ts";
import { codePointCount, isBlank, toSingleLine } from "../contract/text.ts";
import { readArguments, refuseArgument } from "./arguments.ts";
import { toEnvelope } from "./envelope.ts";

export const MAX_PLAN_STEPS = 20;
/** Longest step, and goal, in code points. */
export const MAX_STEP = 400;

const MakePlanArguments = z.strictObject({
  goal: z.string(),
  steps: z.array(z.string()).min(1, "must hold at least one step").max(MAX_PLAN_STEPS),
});

/** Goal and steps -> a numbered plan. Answers `{plan, step_count, artifact}`. */
export const makePlan: Handler = ({ arguments: given }) => {
  const { goal, steps } = readArguments(MakePlanArguments, given);
  const cleanGoal = toStep(goal, "/goal");
  const lines = steps.map((step, index) => `${index + 1}. ${toStep(step, `/steps/${index}`)}`);
  const plan = [`Plan: ${cleanGoal}`, "", ...lines].join("\n");
  return {
    plan,
    step_count: lines.length,
    artifact: toEnvelope({ content: plan, mediaType: "text/plain", fallback: "plan" }),
  };
};

function toStep(text: string, path: string): string {
  if (isBlank(text)) refuseArgument(path, "is empty once white space and invisible characters are gone");
  if (codePointCount(text) > MAX_STEP) refuseArgument(path, `must have at most ${MAX_STEP} characters`);
  return toSingleLine(text);
}
