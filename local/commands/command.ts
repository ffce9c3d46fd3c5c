import type { ApiClient } from "../api-client.ts";
import type { Project } from "../project.ts";

/** What a command is: its words, and a function from parsed words to an exit code. */

export type OptionSpec = {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** Name of the value in the help, for a string. */
  readonly value?: string;
  readonly help: string;
};

export type Terminal = {
  print(text: string): void;
  printError(text: string): void;
  readStdin(): Promise<string>;
};

export type CommandContext = Terminal & {
  readonly project: () => Project;
  /** The service: this machine's own, or the one at `--endpoint`. */
  readonly connect: () => Promise<ApiClient>;
  readonly cwd: string;
  readonly json: boolean;
  readonly words: readonly string[];
  readonly option: (name: string) => string | undefined;
  readonly flag: (name: string) => boolean;
};

export type Command = {
  readonly name: string;
  /** Words after the name, for the help. */
  readonly usage: string;
  readonly summary: string;
  readonly details: string;
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** Least and most words. */
  readonly words: readonly [number, number];
  /** 0 only when all went well. */
  readonly run: (context: CommandContext) => Promise<number>;
};

/** The command was given words that it does not understand. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.print(`${JSON.stringify(value, undefined, 2)}\n`);
}
