import { type Outcome, refuse, succeed } from "../../functions/contract/fault.ts";
import { digestOfDefinition, type OfferedTool } from "../../functions/contract/offered-tool.ts";
import type {
  Clock,
  RemoteAnswer,
  RemoteCall,
  ToolListing,
  ToolSession,
  ToolSource,
} from "../../functions/contract/ports.ts";

/**
 * Servers that live in the test: what they offer is changed by hand, and what they are asked is kept. Held to the
 * port's contract suite.
 */

export type FakeServer = {
  tools: readonly OfferedTool[];
  quarantined: ToolListing["quarantined"];
  ttlMs: number | undefined;
  /** What it says in place of a list; undefined while it is well. */
  failing: string | undefined;
  lists: number;
};

type CallLimits = Parameters<ToolSession["call"]>[1];

export type FakeToolSource = ToolSource & {
  server(name: string): FakeServer;
  readonly calls: readonly RemoteCall[];
  /** What calls are answered with; echoes the arguments when left alone. */
  answer: (call: RemoteCall, limits: CallLimits) => Outcome<RemoteAnswer> | Promise<Outcome<RemoteAnswer>>;
};

export function offeredTool(name: string, changes: Partial<OfferedTool> = {}): OfferedTool {
  return { name, description: `Does ${name}.`, inputSchema: { type: "object" }, ...changes };
}

/** Without a clock no deadline is ever past. */
export function createFakeToolSource(names: readonly string[], clock: Clock = () => 0): FakeToolSource {
  const servers = new Map(names.map((name) => [name, newServer()]));
  const serverOf = (name: string): FakeServer => {
    const server = servers.get(name);
    if (server === undefined) throw new Error(`the test has no server ${name}`);
    return server;
  };
  const calls: RemoteCall[] = [];
  const source: FakeToolSource = {
    server: serverOf,
    calls,
    answer: (call) =>
      succeed({ output: { content: [{ type: "text", text: JSON.stringify(call.arguments) }] }, artifacts: [] }),
    list: async (name, { deadline }) => {
      const server = serverOf(name);
      if (clock() >= deadline) return refuse("SERVER_UNAVAILABLE", "no time is left");
      server.lists += 1;
      if (server.failing !== undefined) return refuse("SERVER_UNAVAILABLE", server.failing);
      const { tools, quarantined, ttlMs } = server;
      return succeed({ tools, quarantined, ttlMs });
    },
    openSession: () => ({
      call: async (call, limits) => {
        if (clock() >= limits.deadline) return refuse("CALL_TIMEOUT", "no time is left");
        const refused = checkOffer(serverOf(call.server), call);
        if (refused !== undefined) return refused;
        calls.push(call);
        return source.answer(call, limits);
      },
      close: async () => undefined,
    }),
  };
  return source;
}

function newServer(): FakeServer {
  return { tools: [], quarantined: [], ttlMs: undefined, failing: undefined, lists: 0 };
}

/** As a real source: what is offered at this moment decides. */
function checkOffer(server: FakeServer, { tool, digest }: RemoteCall): Outcome<never> | undefined {
  if (server.failing !== undefined) return refuse("SERVER_UNAVAILABLE", server.failing);
  const offered = server.tools.find(({ name }) => name === tool);
  if (offered === undefined) return refuse("TOOL_UNKNOWN", `${tool} is not offered`);
  const now = digestOfDefinition(offered);
  return now === digest ? undefined : refuse("TOOL_DEFINITION_CHANGED", `approved ${digest}, offered ${now}`);
}
