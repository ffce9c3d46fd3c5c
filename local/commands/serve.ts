import { join } from "node:path";
import { Fault } from "../../functions/contract/fault.ts";
import { createJsonLog } from "../../functions/wiring/json-log.ts";
import { startLocalServer } from "../server.ts";
import { realTimer } from "../timer.ts";
import { type Command, type CommandContext, printJson, UsageError } from "./command.ts";
import { stopSignal } from "./stop-signal.ts";

const DEFAULT_PORT = 8787;

/** Serves the API on loopback until it is told to stop. */
export const serve: Command = {
  name: "serve",
  usage: "",
  summary: "serve the API on 127.0.0.1 until Ctrl-C",
  details: `Data is kept in .skillbroker/ beside cdk.json. The port is --port, else the variable PORT, else ${DEFAULT_PORT}.`,
  options: { port: { type: "string", value: "n", help: "port; 0 for any free one" } },
  words: [0, 0],
  run: async (context) => {
    if (context.option("endpoint") !== undefined)
      throw new UsageError("serve starts a service; it takes no --endpoint");
    const project = context.project();
    const port = readPort(context);
    const server = await startLocalServer({
      project,
      dataDirectory: join(project.root, ".skillbroker"),
      port,
      clock: () => Date.now(),
      timer: realTimer,
      env: context.env,
      background: "all",
      log: createJsonLog((line) => context.printError(`${line}\n`)),
    }).catch((error: unknown) => {
      throw toPortFault(error, port);
    });
    if (context.json) printJson(context, { url: server.url });
    else context.print(`skillbroker serves ${server.url}\nTry: curl ${server.url}/v1/tools\nStop it with Ctrl-C.\n`);
    await stopSignal();
    await server.close();
    return 0;
  },
};

function readPort(context: CommandContext): number {
  const given = context.option("port") ?? (context.env.PORT || String(DEFAULT_PORT));
  const port = /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN;
  if (port >= 0 && port <= 65_535) return port;
  throw new UsageError(`the port must be a whole number from 0 to 65535, got "${given}"`);
}

const PORT_PROBLEMS: ReadonlyMap<unknown, string> = new Map([
  ["EADDRINUSE", "is taken; stop the other program or choose another with --port"],
  ["EACCES", "is reserved for the system; choose one above 1023 with --port"],
]);

function toPortFault(error: unknown, port: number): unknown {
  if (!(error instanceof Error) || !("syscall" in error) || error.syscall !== "listen" || !("code" in error))
    return error;
  const problem = PORT_PROBLEMS.get(error.code);
  return problem === undefined ? error : new Fault("REQUEST_INVALID", `port ${port} ${problem}`, { cause: error });
}
