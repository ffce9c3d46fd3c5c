import { Fault } from "../functions/contract/fault.ts";
import { runCommandLine } from "./command-line.ts";

const CLEAR_LINE = "\r\x1b[K";

// A reader that went away, such as `head`, has read enough; the command still ends as it would have.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

process.exitCode = await runCommandLine(process.argv.slice(2), {
  cwd: process.cwd(),
  env: process.env,
  print: (text) => process.stdout.write(text),
  printError: (text) => process.stderr.write(text),
  readStdin,
  showProgress: process.stderr.isTTY
    ? (text) => process.stderr.write(text === undefined ? CLEAR_LINE : `${CLEAR_LINE}${text} …`)
    : undefined,
});

async function readStdin(): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    throw new Fault("REQUEST_INVALID", "standard input is not UTF-8", { cause: error });
  }
}
