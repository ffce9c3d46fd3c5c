import { runCommandLine } from "../../../local/command-line.ts";

export type CommandRun = {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Both streams, for a claim that does not care which. */
  readonly output: string;
};

/** Runs `skillbroker` inside this process, with a terminal that is written down. */
export async function runCommand(words: readonly string[], cwd: string = process.cwd()): Promise<CommandRun> {
  const out: string[] = [];
  const err: string[] = [];
  const exitCode = await runCommandLine(words, {
    cwd,
    env: {},
    print: (text) => void out.push(text),
    printError: (text) => void err.push(text),
    readStdin: async () => "",
  });
  const [stdout, stderr] = [out.join(""), err.join("")];
  return { exitCode, stdout, stderr, output: stdout + stderr };
}
