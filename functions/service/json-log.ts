import { Fault } from "../contract/fault.ts";
import type { Log } from "../contract/ports.ts";

/** One JSON object a line. An error among the fields is written with its stack, because a log never leaves. */
export function createJsonLog(write: (line: string) => void): Log {
  return (level, message, fields = {}) => {
    write(
      JSON.stringify({ level, message, ...fields }, (_, value: unknown) =>
        value instanceof Error ? toPlain(value) : value,
      ),
    );
  };
}

function toPlain(error: Error): Readonly<Record<string, unknown>> {
  const code = error instanceof Fault ? { code: error.code } : {};
  const cause = error.cause === undefined ? {} : { cause: error.cause };
  return { name: error.name, message: error.message, ...code, stack: error.stack, ...cause };
}
