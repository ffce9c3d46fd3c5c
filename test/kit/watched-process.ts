import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/** A program of the tests' own in a process of its own, that says a line for each step and may be killed at any. */

export type WatchedProcess = ChildProcessByStdio<null, Readable, Readable>;

export function startProgram(program: string, words: readonly string[]): WatchedProcess {
  return spawn(process.execPath, [program, ...words], { stdio: ["ignore", "pipe", "pipe"] });
}

/** Resolves once it has ended; at once when it has already. */
export async function killProcess(child: WatchedProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

export type Ended = { readonly lines: readonly string[]; readonly code: number | null; readonly errors: string };

/** Kills without a warning after `killAfter` lines; waits for the end otherwise. */
export async function watch(child: WatchedProcess, killAfter = Number.POSITIVE_INFINITY): Promise<Ended> {
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const closed = once(child, "close");
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (lines.length === killAfter) child.kill("SIGKILL");
  }
  await closed;
  return {
    lines,
    code: child.exitCode,
    errors: errors.replace(/^.*ExperimentalWarning.*\n.*--trace-warnings.*\n/gm, ""),
  };
}
