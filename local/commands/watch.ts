import { Fault, orThrow } from "../../functions/contract/fault.ts";
import { parseMcpServers, reservedServerNames } from "../../functions/contract/mcp-server.ts";
import { LIST_CHANGED, NotificationReceipt } from "../../functions/contract/notification.ts";
import type { Log } from "../../functions/contract/ports.ts";
import { RefreshReport } from "../../functions/contract/refresh.ts";
import { MCPRefreshHook } from "../../functions/mcp/client/refresh-hook.ts";
import type { ApiClient } from "../api-client.ts";
import { createLocalSecretReader } from "../secrets.ts";
import { realTimer } from "../timer.ts";
import { type Command, type CommandContext, toTerminalText } from "./command.ts";
import { expectBody } from "./expect-ok.ts";
import { keepTrying } from "./keep-trying.ts";
import { stopSignal } from "./stop-signal.ts";

/** Holds a connection to each MCP server and does something about every change of a list. */
export const watch: Command = {
  name: "watch",
  usage: "",
  summary: "hold connections to the MCP servers of mcp.json and act on their changes",
  details:
    "With --endpoint each change becomes a notification to the deployed service, which cannot listen by itself. Without " +
    "it each change refreshes this machine's catalog; skillbroker serve does that too, beside serving. Prints a line " +
    "for each thing that happens (a JSON object with --json), until Ctrl-C.",
  options: {},
  words: [0, 0],
  run: async (context) => {
    const { settings, mcp } = context.project();
    const servers = orThrow(parseMcpServers(mcp, { reserved: reservedServerNames([]) }));
    if (servers.length === 0) {
      throw new Fault("REQUEST_INVALID", `${settings.mcp} declares no MCP server, so there is nothing to watch`);
    }
    // The MCP SDK takes its time to load, which no other command needs to wait for.
    const { startMcpConnections } = await import("../mcp-connections.ts");
    const client = await context.connect();
    const elsewhere = context.option("endpoint") !== undefined;
    const clock = () => Date.now();
    const log: Log = (level, message, fields = {}) =>
      tell(
        context,
        String(fields.server ?? fields.name ?? ""),
        `${level === "info" ? "" : `${level}: `}${message}${fields.reason === undefined ? "" : `: ${fields.reason}`}`,
      );
    // What a refresh came to is told by itself.
    const logTrouble: Log = (level, message, fields) => (level === "info" ? undefined : log(level, message, fields));
    const hooks: MCPRefreshHook[] = [];
    const connections = startMcpConnections(
      {
        servers,
        readSecret: createLocalSecretReader({ env: context.env, clock }),
        clock,
        timer: realTimer,
        random: Math.random,
        log,
      },
      (adapter, server) => {
        const act = elsewhere ? () => passOn(server, client) : () => refreshNow(server, client);
        const refreshAll = async () => {
          const told = await keepTrying(act, {
            timer: realTimer,
            random: Math.random,
            onFailure: (error) => tell(context, server, `error: ${error}`),
          });
          tell(context, server, told);
        };
        // A deployed service waits for quiet by itself.
        const window = elsewhere ? 0 : settings.debounceSeconds;
        const longestWaitSeconds = settings.longestWaitSeconds;
        hooks.push(
          new MCPRefreshHook(adapter, { refreshAll }, window, {
            timer: realTimer,
            clock,
            log: logTrouble,
            longestWaitSeconds,
          }),
        );
      },
    );
    tell(context, servers.map(({ name }) => name).join(", "), "watching; stop with Ctrl-C");
    await stopSignal();
    for (const hook of hooks) hook.cancel();
    await connections.close();
    return 0;
  },
};

async function passOn(server: string, client: ApiClient): Promise<string> {
  const answer = await client.send("POST", "/v1/notifications", { server, method: LIST_CHANGED, source: "watch" });
  expectBody(answer, NotificationReceipt);
  return "notification queued";
}

async function refreshNow(server: string, client: ApiClient): Promise<string> {
  const answer = await client.send("POST", "/v1/refreshes", { servers: [server], source: "watch" });
  const { generation, summary, servers } = expectBody(answer, RefreshReport);
  const asked = servers.find(({ name }) => name === server);
  // Nobody else tries again: the schedule is the business of a service that lives on.
  if (asked?.status !== "fresh") throw new Fault("SERVER_UNAVAILABLE", asked?.reason ?? `${server} gave no list`);
  return `generation ${generation}: ${summary}`;
}

function tell(context: CommandContext, server: string, what: string): void {
  const at = new Date().toISOString();
  if (context.json) context.print(`${JSON.stringify({ at, server, event: what })}\n`);
  else context.print(`${at}  ${toTerminalText(server)}  ${toTerminalText(what)}\n`);
}
