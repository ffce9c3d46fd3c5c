import { Fault } from "../contract/fault.ts";
import type { Log } from "../contract/ports.ts";

/** An error may be its own cause. */
const MAX_CAUSES = 5;

/**
 * One JSON object a line. An error among the fields is written with its stack, because a log never leaves. Never
 * throws: a field that JSON cannot write must not turn an answer into a failure.
 */
export function createJsonLog(write: (line: string) => void): Log {
  return (level, message, fields = {}) => {
    const line = { level, message, ...fields };
    write(toLine(line) ?? JSON.stringify({ level, message, unwritable: Object.keys(fields).join(" ") }));
  };
}

function toLine(fields: Readonly<Record<string, unknown>>): string | undefined {
  try {
    return JSON.stringify(fields, (_, value: unknown) => toWritable(value));
  } catch {
    // A cycle, or a getter that throws; the caller says which fields there were.
    return undefined;
  }
}

function toWritable(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  return value instanceof Error ? toPlain(value, MAX_CAUSES) : value;
}

function toPlain(error: Error, causesLeft: number): Readonly<Record<string, unknown>> {
  const code = error instanceof Fault ? { code: error.code } : {};
  const errors = error instanceof AggregateError ? { errors: error.errors } : {};
  const plain = { name: error.name, message: error.message, ...code, stack: error.stack, ...errors };
  if (error.cause === undefined) return plain;
  if (!(error.cause instanceof Error)) return { ...plain, cause: error.cause };
  return { ...plain, cause: causesLeft > 0 ? toPlain(error.cause, causesLeft - 1) : "…" };
}
