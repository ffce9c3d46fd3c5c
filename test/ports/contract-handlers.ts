import { Fault, ToolInputError } from "../../functions/contract/fault.ts";
import type { Handler } from "../../functions/contract/ports.ts";

/**
 * The handlers of the runners' contract. In a file of their own, because a runner with a thread of its own loads them
 * there; the one that spins looks at the real clock, and all else they know is their input.
 */

/** In the text of what the handlers throw; must not come out. */
export const SECRET = "/home/someone/secret";
export const CONTRACT_HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ["echo", (input) => ({ ...input.arguments, now: input.now, skill: input.skill?.id ?? null })],
  // What a thread of its own could not send back must not pass on the caller's either.
  ["answer-function", () => ({ made: () => 1 })],
  ["answer-promise", () => ({ made: Promise.resolve(1) })],
  ["template", ({ skill }) => ({ text: skill?.templates.get("main") ?? null })],
  [
    "refuse",
    () => {
      throw new ToolInputError("the arguments do not fit", [{ path: "/title", message: "is empty" }]);
    },
  ],
  [
    "unavailable",
    () => {
      throw new Fault("TOOL_UNAVAILABLE", "the skill's template cannot be used");
    },
  ],
  [
    "break",
    () => {
      throw new TypeError(`cannot read ${SECRET}`);
    },
  ],
  [
    "throw-text",
    () => {
      throw SECRET;
    },
  ],
  [
    "mutate",
    ({ arguments: given }) => {
      const list = given.list;
      if (Array.isArray(list)) list.push("mutated");
      Reflect.set(given, "added", true);
      return { list };
    },
  ],
  [
    "spin",
    ({ arguments: given }) => {
      const until = Date.now() + Number(given.ms);
      while (Date.now() < until);
      return { spun: true };
    },
  ],
]);
