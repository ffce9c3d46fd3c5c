import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { Fault, toWireFault, type Violation } from "../functions/contract/fault.ts";
import { PRODUCT_VERSION } from "../functions/contract/product.ts";
import { createJsonLog } from "../functions/wiring/json-log.ts";
import { type ApiClient, createApiClient } from "./api-client.ts";
import {
  type Command,
  type CommandContext,
  printJson,
  type Terminal,
  toTerminalText,
  UsageError,
} from "./commands/command.ts";
import { deadLetters } from "./commands/dead-letters.ts";
import { describe } from "./commands/describe.ts";
import { jobs } from "./commands/jobs.ts";
import { notify } from "./commands/notify.ts";
import { pin } from "./commands/pin.ts";
import { refresh } from "./commands/refresh.ts";
import { run } from "./commands/run.ts";
import { serve } from "./commands/serve.ts";
import { tools } from "./commands/tools.ts";
import { validate } from "./commands/validate.ts";
import { verify } from "./commands/verify.ts";
import { watch } from "./commands/watch.ts";
import { connectToEndpoint } from "./endpoint.ts";
import { COMMON_OPTIONS, helpOf, overview, usageOf } from "./help.ts";
import { findProjectRoot, readProject } from "./project.ts";
import { startLocalServer } from "./server.ts";
import { realTimer } from "./timer.ts";

/** The command `skillbroker`. */

/** That of the checkout or the package, whether this runs from sources or from what was built of them. */
const OWN_PROJECT = findProjectRoot(import.meta.dirname, dirname(import.meta.dirname));

const COMMANDS: readonly Command[] = [
  tools,
  describe,
  run,
  jobs,
  refresh,
  notify,
  watch,
  deadLetters,
  verify,
  pin,
  validate,
  serve,
];

export type CommandLineOptions = Terminal & {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
};

/**
 * Exit code: 0 when all went well, 1 when something was refused or failed, 2 for words that were not understood.
 * Never rejects; with `SKILLBROKER_DEBUG` set, what was not foreseen is printed with its stack.
 */
export async function runCommandLine(words: readonly string[], options: CommandLineOptions): Promise<number> {
  const terminal = withoutControls(options);
  const json = words.includes("--json");
  try {
    return await runWords(words, terminal);
  } catch (error) {
    const failure = toFailure(error, options.env);
    if (json)
      printJson(terminal, { ok: false, error: { code: failure.code, message: failure.message, ...failure.extra } });
    else terminal.printError(`${failure.shown}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function runWords(words: readonly string[], options: CommandLineOptions): Promise<number> {
  const [name, ...rest] = words;
  if (name === undefined) throw new UsageError(`a command is missing\n\n${overview(COMMANDS).trimEnd()}`);
  if (name === "--version") return printed(options, `${PRODUCT_VERSION}\n`);
  if (name === "--help" || name === "-h" || name === "help") {
    const [topic] = rest.filter((word) => !word.startsWith("-"));
    return printed(options, topic === undefined ? overview(COMMANDS) : helpOf(findCommand(topic)));
  }
  const command = findCommand(name);
  try {
    return await runCommand(command, rest, options);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(`${error.message}\n${usageOf(command)}\nmore: skillbroker ${command.name} --help`);
  }
}

function findCommand(name: string): Command {
  const command = COMMANDS.find((each) => each.name === name);
  if (command !== undefined) return command;
  const names = COMMANDS.map((each) => each.name).join(", ");
  throw new UsageError(`there is no command "${name}"; there are ${names}\nmore: skillbroker --help`);
}

async function runCommand(command: Command, words: readonly string[], options: CommandLineOptions): Promise<number> {
  const { values, positionals } = parseWords(command, words);
  const option = (name: string) => asString(values.get(name));
  const flag = (name: string) => values.get(name) === true;
  if (flag("help")) return printed(options, helpOf(command));
  const [least, most] = command.words;
  if (positionals.length < least) throw new UsageError(`${command.usage} is missing`);
  if (positionals.length > most) throw new UsageError(`too many words: ${JSON.stringify(positionals[most])}`);
  const root = option("project") ?? findProjectRoot(options.cwd, OWN_PROJECT);
  const project = once(() => readProject(root));
  const background = command.runsJobs?.({ flag }) === true ? "jobs" : "none";
  const connect = once(() => connectTo(option("endpoint"), { project, root, env: options.env, background }));
  const context: CommandContext = {
    ...options,
    project,
    connect,
    json: flag("json"),
    words: positionals,
    option,
    flag,
    during: (what, work) => showDuring(options, what, work),
  };
  try {
    return await command.run(context);
  } finally {
    if (connect.made()) await closeQuietly(connect);
  }
}

/** A client that could not be made has failed the command already. */
async function closeQuietly(connect: () => Promise<ApiClient>): Promise<void> {
  const client = await connect().catch(() => undefined);
  await client?.close();
}

async function showDuring<T>({ showProgress }: Terminal, what: string, work: () => Promise<T>): Promise<T> {
  showProgress?.(toTerminalText(what));
  try {
    return await work();
  } finally {
    showProgress?.(undefined);
  }
}

function parseWords(command: Command, words: readonly string[]) {
  const specs = Object.entries({ ...command.options, ...COMMON_OPTIONS });
  const parsing = Object.fromEntries(
    specs.map(([name, { type, short }]) => [name, { type, ...(short === undefined ? {} : { short }) }]),
  );
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: parsing,
      allowPositionals: true,
      strict: true,
    });
    return { values: new Map(Object.entries(values)), positionals };
  } catch (error) {
    throw new UsageError(firstSentence(error instanceof Error ? error.message : "the words were not understood"));
  }
}

/** Node goes on with advice on positional arguments that are no use here. */
function firstSentence(message: string): string {
  return message.split(/\.\s|\n/)[0] ?? message;
}

function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

type Source = {
  readonly project: () => ReturnType<typeof readProject>;
  readonly root: string;
  readonly env: CommandLineOptions["env"];
  readonly background: "none" | "jobs";
};

/** Without an endpoint the service runs inside this process, for as long as the command. */
async function connectTo(endpoint: string | undefined, { project, root, env, background }: Source): Promise<ApiClient> {
  if (endpoint !== undefined) return connectToEndpoint(endpoint, env);
  const server = await startLocalServer({
    project: project(),
    dataDirectory: join(root, ".skillbroker"),
    port: 0,
    clock: () => Date.now(),
    timer: realTimer,
    env,
    background,
    log: createJsonLog(isDebugging(env) ? (line) => process.stderr.write(`${line}\n`) : () => undefined),
  });
  return createApiClient({ baseUrl: server.url, onClose: server.close });
}

type Failure = {
  readonly code: string;
  readonly message: string;
  /** What a person is shown. */
  readonly shown: string;
  readonly extra: { readonly errors?: readonly Violation[] };
};

function isDebugging(env: CommandLineOptions["env"]): boolean {
  return (env.SKILLBROKER_DEBUG ?? "") !== "";
}

function toFailure(error: unknown, env: CommandLineOptions["env"]): Failure {
  if (error instanceof UsageError) {
    const { message } = error;
    return { code: "REQUEST_INVALID", message: message.split("\n")[0] ?? message, shown: message, extra: {} };
  }
  const debugging = isDebugging(env);
  if (error instanceof Fault) {
    const { errors } = toWireFault(error);
    const shown = debugging ? stackOf(error) : error.message.replace(/$|(?=\n)/, ` (${error.code})`);
    return { code: error.code, message: error.message, shown, extra: errors === undefined ? {} : { errors } };
  }
  const reason = error instanceof Error ? error.message : String(error);
  const message = `skillbroker failed: ${reason.replaceAll(/\s+/g, " ").slice(0, 300)}`;
  const shown = debugging ? stackOf(error) : `${message}; set SKILLBROKER_DEBUG=1 to see where`;
  return { code: "DEFECT", message, shown, extra: {} };
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by ${stackOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}

function once<T>(make: () => T): (() => T) & { made(): boolean } {
  let made: { readonly value: T } | undefined;
  const get = () => {
    made ??= { value: make() };
    return made.value;
  };
  return Object.assign(get, { made: () => made !== undefined });
}

function printed(terminal: Terminal, text: string): number {
  terminal.print(text);
  return 0;
}

/** What services and skills say is shown, but cannot move the cursor. */
function withoutControls(options: CommandLineOptions): CommandLineOptions {
  return {
    ...options,
    print: (text) => options.print(toTerminalText(text)),
    printError: (text) => options.printError(toTerminalText(text)),
  };
}
