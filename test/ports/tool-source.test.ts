import { succeed } from "../../functions/contract/fault.ts";
import type { OfferedTool } from "../../functions/contract/offered-tool.ts";
import type { JsonObject } from "../../functions/contract/tool.ts";
import { liftContent } from "../../functions/mcp/client/lift-content.ts";
import { createMcpToolSource } from "../../functions/mcp/client/tool-source.ts";
import { createFakeToolSource } from "../kit/fake-tool-source.ts";
import { startMcpServer } from "../kit/mcp-server.ts";
import { describeToolSource, type OpenedToolSource } from "./tool-source-contract.ts";

const ANSWER: JsonObject = { content: [] };

describeToolSource("the tests' own servers", async (): Promise<OpenedToolSource> => {
  const source = createFakeToolSource(["s1"], Date.now);
  const server = source.server("s1");
  let result = ANSWER;
  source.answer = (_, { maxBytes }) => liftContent(result, { maxBytes, maxFiles: 64, redact: (text) => text });
  return {
    source,
    offer: (tools) => {
      server.tools = tools;
    },
    answer: (next) => {
      result = next;
    },
    breakDown: () => {
      server.failing = "out of order";
    },
    reached: () => source.calls.map((call) => call.arguments),
    close: async () => undefined,
  };
});

for (const protocol of ["2026-07-28", "2025-11-25"] as const) {
  describeToolSource(`an MCP server that speaks ${protocol}`, async (): Promise<OpenedToolSource> => {
    const server = await startMcpServer({ tools: [], protocol });
    let result = ANSWER;
    const serve = ({ name, title, description, annotations, inputSchema }: OfferedTool) => ({
      name,
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      ...(annotations === undefined ? {} : { annotations }),
      inputSchema: { ...inputSchema, type: "object" as const },
      answer: () => result,
    });
    const config = { name: "s1", transport: "http", url: server.url, headers: new Map() } as const;
    return {
      source: createMcpToolSource({ servers: [config], readSecret: async () => succeed(""), clock: Date.now }),
      offer: (tools) => server.setTools(tools.map(serve)),
      answer: (next) => {
        result = next;
      },
      breakDown: () => server.fail(503),
      reached: () => server.calls().map((call) => call.arguments),
      close: server.close,
    };
  });
}
