import type { Log } from "./ports.ts";

/** The same log, with these fields in every line: which request, which job. A line's own field wins. */
export function withFields(log: Log, bound: Readonly<Record<string, unknown>>): Log {
  return (level, message, fields) => log(level, message, { ...bound, ...fields });
}
