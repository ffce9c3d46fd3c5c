import { succeed } from "../../contract/fault.ts";
import type { ToolSource } from "../../contract/ports.ts";
import { startDeadline } from "./deadline.ts";
import { DEFAULT_LIST_LIMITS } from "./list-tools.ts";
import { findServer, openListed, type Peers } from "./open-listed.ts";
import { createToolSession } from "./tool-session.ts";

/** The servers that lend tools, over MCP. A connection lives for one list, or for the calls of one job. */

export type McpToolSourceOptions = Pick<Peers, "servers" | "readSecret" | "clock"> & Partial<Peers>;

const DEFAULT_MAX_FILES = 64;
/** Milliseconds for a farewell, or for a process to end by itself, as far as the deadline leaves them. */
const GRACE_MS = 500;

export function createMcpToolSource(options: McpToolSourceOptions): ToolSource {
  const peers: Peers = {
    limits: DEFAULT_LIST_LIMITS,
    maxFiles: DEFAULT_MAX_FILES,
    abortAfter: (milliseconds) => AbortSignal.timeout(milliseconds),
    ...options,
  };
  return {
    list: async (name, { deadline }) => {
      const until = startDeadline(deadline, peers);
      const graceMs = () => Math.min(GRACE_MS, until.remainingMs());
      const opened = await openListed(findServer(name, peers), peers, { deadline: until, graceMs });
      if (!opened.ok) return opened;
      await opened.value.connection.close();
      return succeed(opened.value.listing);
    },
    openSession: () => createToolSession(peers),
  };
}
