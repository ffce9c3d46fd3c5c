// An MCP server on standard input and output, as `node mcp-process-server.mjs '{"manner":…,"tools":[…]}'`. The manner
// says how it behaves: as the SDK does, or as servers do that the SDK would not let anyone write.

import { createInterface } from "node:readline";

const { manner = "honest", tools = [], stubborn = false } = JSON.parse(process.argv[2] ?? "{}");

if (stubborn) {
  process.on("SIGTERM", () => undefined);
  setInterval(() => undefined, 1_000);
}

/** What each tool answers: the names of the variables, or what it was given. */
function answer({ name, arguments: given }) {
  const text = name === "environment" ? JSON.stringify(process.env) : JSON.stringify(given ?? {});
  return { content: [{ type: "text", text }] };
}

async function serveHonestly() {
  const { Server } = await import("@modelcontextprotocol/server");
  const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
  serveStdio(() => {
    const server = new Server({ name: "process", version: "1" }, { capabilities: { tools: { listChanged: true } } });
    server.setRequestHandler("tools/list", () => ({ tools }));
    server.setRequestHandler("tools/call", ({ params }) => answer(params));
    return server;
  });
}

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

const INITIALIZED = {
  protocolVersion: "2025-11-25",
  capabilities: { tools: { listChanged: true } },
  serverInfo: { name: "process", version: "1" },
};

/** What a manner changes; what it does not name is answered as a server of the older revision does. */
const MANNERS = {
  /** Ends at any request that comes before `initialize`. */
  abrupt: { "server/discover": () => process.exit(1) },
  /** Does not answer what it does not know. */
  silent: { "server/discover": () => undefined },
  /** Ends while it is asked. */
  dying: {
    "tools/list": () => {
      process.stderr.write("out of memory\n");
      process.exitCode = 3;
      process.stdin.destroy();
    },
  },
  /** Its answer has no end. */
  endless: {
    "tools/list": () => {
      const more = () => process.stdout.write("x".repeat(65_536), more);
      process.stdout.on("error", () => process.exit(0));
      more();
    },
  },
  /** Ends when it has been spoken with for a moment. */
  brief: { "notifications/initialized": () => setTimeout(() => process.exit(4), 50) },
  /** Says that its list has changed as soon as a client is there. */
  telling: {
    "notifications/initialized": () => send({ method: "notifications/tools/list_changed" }),
  },
};

function serveByHand(changes) {
  const manners = {
    initialize: ({ id }) => send({ id, result: INITIALIZED }),
    "tools/list": ({ id }) => send({ id, result: { tools } }),
    "tools/call": ({ id, params }) => send({ id, result: answer(params) }),
    ping: ({ id }) => send({ id, result: {} }),
    ...changes,
  };
  createInterface({ input: process.stdin }).on("line", (line) => {
    const message = JSON.parse(line);
    const act = manners[message.method];
    if (act !== undefined) act(message);
    else if (message.id !== undefined) send({ id: message.id, error: { code: -32601, message: "Method not found" } });
  });
}

if (manner === "honest") await serveHonestly();
else serveByHand(MANNERS[manner]);
