import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** The command in a process of its own, as a shell starts it. */

const PROGRAM = join(import.meta.dirname, "..", "..", "local", "skillbroker.mjs");

export type ChildCommand = {
  readonly process: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves once standard output fits; rejects when the process ends before. */
  readonly until: (wanted: RegExp) => Promise<string>;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
};

export function startCommand(words: readonly string[], options: { readonly cwd: string }): ChildCommand {
  const child = spawn(process.execPath, [PROGRAM, ...words], { cwd: options.cwd, stdio: "pipe" });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (chunk) => out.push(chunk));
  child.stderr.on("data", (chunk) => err.push(chunk));
  const stdout = () => Buffer.concat(out).toString("utf8");
  const stderr = () => Buffer.concat(err).toString("utf8");
  const ended = new Promise<{ code: number | null; signal: string | null }>((done) => {
    child.once("close", (code, signal) => done({ code, signal }));
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return {
    process: child,
    stdout,
    stderr,
    ended,
    until: (wanted) =>
      new Promise((done, fail) => {
        const look = () => {
          if (wanted.test(stdout())) done(stdout());
        };
        child.stdout.on("data", look);
        ended.then(() => fail(new Error(`ended before ${wanted}: ${stdout()}${stderr()}`)));
        look();
      }),
  };
}
