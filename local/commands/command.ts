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
  /** Throws `REQUEST_INVALID` when what comes is not UTF-8. */
  readStdin(): Promise<string>;
  /**
   * Shows what is going on now, in place of what was shown before; undefined shows nothing. Absent without a terminal.
   */
  readonly showProgress?: ((text: string | undefined) => void) | undefined;
};

export type CommandContext = Omit<Terminal, "showProgress"> & {
  readonly project: () => Project;
  /** The service: this machine's own, or the one at `--endpoint`. */
  readonly connect: () => Promise<ApiClient>;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly json: boolean;
  readonly words: readonly string[];
  readonly option: (name: string) => string | undefined;
  readonly flag: (name: string) => boolean;
  /** Says on a terminal what is being waited for. */
  readonly during: <T>(what: string, work: () => Promise<T>) => Promise<T>;
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
  /** Whether this machine's own service is to run queued jobs while the command lasts. */
  readonly runsJobs?: (context: Pick<CommandContext, "flag">) => boolean;
  /** 0 only when all went well. */
  readonly run: (context: CommandContext) => Promise<number>;
};

/** The command was given words that it does not understand. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Characters that move a terminal's cursor or the direction of a line. */
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** Without the characters by which a text from elsewhere could rewrite what the terminal shows. */
export function toTerminalText(text: string): string {
  return text.replace(CONTROLS, "");
}

/** Controls are escaped, so the value stays what it is. */
export function printJson(terminal: Pick<Terminal, "print">, value: unknown): void {
  const text = JSON.stringify(value, undefined, 2).replace(
    CONTROLS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  terminal.print(`${text}\n`);
}
