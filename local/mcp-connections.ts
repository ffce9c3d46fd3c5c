import type { MCPServerConfig } from "../functions/contract/mcp-server.ts";
import { LIST_CHANGED, type Notification } from "../functions/contract/notification.ts";
import type { Clock, EventQueue, Log, ReadSecret, Timer } from "../functions/contract/ports.ts";
import { MCPToolAdapter } from "../functions/mcp/client/adapter.ts";

/** Connections that live as long as the process, one a server, by which the servers say that their lists changed. */

export type McpConnectionsOptions = {
  readonly servers: readonly MCPServerConfig[];
  readonly readSecret: ReadSecret;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly random: () => number;
  readonly log: Log;
};

export type McpConnections = {
  readonly adapters: readonly MCPToolAdapter[];
  /** Ends every connection and every process that was started for one. Never rejects. */
  close(): Promise<void>;
};

/** `listen` is called for each adapter before it connects, so that nothing that it says is missed. */
export function startMcpConnections(
  { servers, ...ports }: McpConnectionsOptions,
  listen: (adapter: MCPToolAdapter, server: string) => void,
): McpConnections {
  const adapters = servers.map((config) => {
    const adapter = new MCPToolAdapter({ config, ...ports });
    listen(adapter, config.name);
    adapter.start();
    return adapter;
  });
  return { adapters, close: async () => void (await Promise.all(adapters.map((adapter) => adapter.close()))) };
}

export type PassOnOptions = {
  readonly queue: EventQueue;
  readonly timer: Timer;
  readonly log: Log;
  /** Between two notifications of one server; what comes in between is told by the second. */
  readonly pauseMs: number;
};

/**
 * Passes each server's changes on as queued notifications; one that cannot be queued is logged. A server that notifies
 * in a loop costs the queue a few messages a second and not thousands.
 */
export function passOn({
  queue,
  timer,
  log,
  pauseMs,
}: PassOnOptions): (adapter: MCPToolAdapter, server: string) => void {
  return (adapter, server) => {
    const notification: Notification = { server, method: LIST_CHANGED, source: "watch" };
    const send = () => {
      queue
        .send({ body: JSON.stringify(notification) })
        .catch((error: unknown) => log("error", "notification not queued", { server, error }));
    };
    let resting = false;
    let again = false;
    const tell = () => {
      again = resting;
      if (resting) return;
      resting = true;
      send();
      timer(() => {
        resting = false;
        if (again) tell();
      }, pauseMs);
    };
    adapter.addNotificationListener((method) => {
      if (method === LIST_CHANGED) tell();
    });
  };
}
