import type { Command, OptionSpec } from "./commands/command.ts";

/** The texts that explain the command line. */

export const COMMON_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  json: { type: "boolean", help: "answer with JSON on standard output, refusals too" },
  project: { type: "string", value: "dir", help: "directory of cdk.json; the nearest one upwards when left out" },
  endpoint: {
    type: "string",
    value: "url",
    help: "use a running service; beyond this machine, requests bear the token in SKILLBROKER_TOKEN, or are signed with your AWS credentials",
  },
  help: { type: "boolean", short: "h", help: "show this help" },
};

export function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name, usage }) => name.length + usage.length)) + 3;
  const lines = commands.map(({ name, usage, summary }) => `  ${`${name} ${usage}`.padEnd(width)}${summary}`);
  return [
    "skillbroker runs approved, digest-pinned skills as jobs and hands back the files they make.",
    "",
    "usage: skillbroker <command> [words] [options]",
    "",
    ...lines,
    "",
    "Each command explains itself: skillbroker <command> --help",
    "Exit code: 0 when all went well, 1 when something was refused or failed, 2 for words not understood.",
    "",
  ].join("\n");
}

export function helpOf(command: Command): string {
  const lefts = Object.entries({ ...command.options, ...COMMON_OPTIONS }).map(([name, { short, value, help }]) => ({
    left: `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` <${value}>`}`,
    help,
  }));
  const width = Math.max(...lefts.map(({ left }) => left.length)) + 2;
  return [
    usageOf(command),
    "",
    command.summary,
    ...(command.details === "" ? [] : ["", command.details]),
    "",
    "options:",
    ...lefts.map(({ left, help }) => `  ${left.padEnd(width)}${help}`),
    "",
  ].join("\n");
}

export function usageOf({ name, usage }: Command): string {
  return ["usage: skillbroker", name, usage, "[options]"].filter((word) => word !== "").join(" ");
}
