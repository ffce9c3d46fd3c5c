import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { Fault } from "../functions/contract/fault.ts";
import { PRODUCT_VERSION } from "../functions/contract/product.ts";
import { createJsonLog } from "../functions/service/json-log.ts";
import { type ApiClient, createApiClient } from "./api-client.ts";
import {
  type Command,
  type CommandContext,
  type OptionSpec,
  printJson,
  type Terminal,
  UsageError,
} from "./commands/command.ts";
import { describe } from "./commands/describe.ts";
import { jobs } from "./commands/jobs.ts";
import { pin } from "./commands/pin.ts";
import { run } from "./commands/run.ts";
import { serve } from "./commands/serve.ts";
import { tools } from "./commands/tools.ts";
import { validate } from "./commands/validate.ts";
import { verify } from "./commands/verify.ts";
import { findProjectRoot, readProject } from "./project.ts";
import { startLocalServer } from "./server.ts";

/** The command `skillbroker`. */

const COMMANDS: readonly Command[] = [tools, describe, run, jobs, verify, pin, validate, serve];

const COMMON_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  json: { type: "boolean", help: "answer with JSON on standard output" },
  project: { type: "string", value: "dir", help: "directory of cdk.json; the nearest one upwards when left out" },
  endpoint: { type: "string", value: "url", help: "talk to a service that runs, such as http://127.0.0.1:8787" },
  help: { type: "boolean", short: "h", help: "show this help" },
};

export type CommandLineOptions = Terminal & {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** Exit code: 0 when all went well, 1 when something was refused or failed, 2 for words that were not understood. */
export async function runCommandLine(words: readonly string[], options: CommandLineOptions): Promise<number> {
  const [name = "--help", ...rest] = words;
  if (name === "--help" || name === "-h" || name === "help") return printed(options, overview());
  if (name === "--version") return printed(options, `${PRODUCT_VERSION}\n`);
  const command = COMMANDS.find((each) => each.name === name);
  if (command === undefined) return misused(options, `there is no command "${name}"`, overview());
  const json = rest.includes("--json");
  try {
    return await runCommand(command, rest, options);
  } catch (error) {
    if (error instanceof UsageError) return misused(options, error.message, helpOf(command));
    if (!(error instanceof Fault)) throw error;
    if (json) printJson(options, { ok: false, error: { code: error.code, message: error.message } });
    else options.printError(`${error.message} (${error.code})\n`);
    return 1;
  }
}

async function runCommand(command: Command, words: readonly string[], options: CommandLineOptions): Promise<number> {
  const { values, positionals } = parseWords(command, words);
  const option = (name: string) => asString(values.get(name));
  const flag = (name: string) => values.get(name) === true;
  if (flag("help")) return printed(options, helpOf(command));
  const [least, most] = command.words;
  if (positionals.length < least || positionals.length > most) {
    throw new UsageError(`wanted: skillbroker ${command.name} ${command.usage}`);
  }
  const root = option("project") ?? findProjectRoot(options.cwd, dirname(import.meta.dirname));
  const project = once(() => readProject(root));
  const connect = once(() => connectTo(option("endpoint"), project, root));
  const context: CommandContext = {
    ...options,
    project,
    connect,
    json: flag("json"),
    words: positionals,
    option,
    flag,
  };
  try {
    return await command.run(context);
  } finally {
    if (connect.made()) await (await connect()).close();
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
    throw new UsageError(error instanceof Error ? error.message : "the words were not understood");
  }
}

function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

type Project = ReturnType<typeof readProject>;

/** Without an endpoint the service runs inside this process, for as long as the command. */
async function connectTo(endpoint: string | undefined, project: () => Project, root: string): Promise<ApiClient> {
  if (endpoint !== undefined) {
    if (!URL.canParse(endpoint)) throw new UsageError(`--endpoint: "${endpoint}" is no URL`);
    return createApiClient({ baseUrl: endpoint.replace(/\/$/, "") });
  }
  const server = await startLocalServer({
    project: project(),
    dataDirectory: join(root, ".skillbroker"),
    port: 0,
    clock: () => Date.now(),
    log: createJsonLog(() => undefined),
  });
  return createApiClient({ baseUrl: server.url, onClose: server.close });
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

function misused(terminal: Terminal, message: string, help: string): number {
  terminal.printError(`${message}\n\n${help}`);
  return 2;
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name, usage }) => name.length + usage.length)) + 3;
  const lines = COMMANDS.map(({ name, usage, summary }) => `  ${`${name} ${usage}`.padEnd(width)}${summary}`);
  return [
    "skillbroker runs approved, digest-pinned skills as jobs and hands back the files they make.",
    "",
    "usage: skillbroker <command> [words] [options]",
    "",
    ...lines,
    "",
    "Each command explains itself: skillbroker <command> --help",
    "",
  ].join("\n");
}

function helpOf(command: Command): string {
  const options = Object.entries({ ...command.options, ...COMMON_OPTIONS }).map(([name, { short, value, help }]) => {
    const left = `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` <${value}>`}`;
    return `  ${left.padEnd(24)}${help}`;
  });
  return [
    `usage: skillbroker ${command.name} ${command.usage} [options]`,
    "",
    command.summary,
    ...(command.details === "" ? [] : ["", command.details]),
    "",
    "options:",
    ...options,
    "",
  ].join("\n");
}
