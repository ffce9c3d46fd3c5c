import { Fault } from "../../functions/contract/fault.ts";
import { runCommandLine } from "../../local/command-line.ts";

export type Ran = {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly progress: readonly (string | undefined)[];
};

export type RunOptions = {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly stdin?: string | Fault;
};

/** The command line in this process, with a terminal that remembers. */
export async function runCli(
  words: readonly string[],
  { cwd = "/", env = {}, stdin = "" }: RunOptions = {},
): Promise<Ran> {
  const out: string[] = [];
  const err: string[] = [];
  const progress: (string | undefined)[] = [];
  const code = await runCommandLine(words, {
    cwd,
    env,
    print: (text) => out.push(text),
    printError: (text) => err.push(text),
    readStdin: async () => {
      if (stdin instanceof Fault) throw stdin;
      return stdin;
    },
    showProgress: (text) => progress.push(text),
  });
  return { code, out: out.join(""), err: err.join(""), progress };
}
