import { afterAll } from "vitest";
import { LIST_CHANGED } from "../../../functions/contract/notification.ts";
import { aTool } from "../../kit/mcp-peers.ts";
import { type McpTestServer, startMcpServer } from "../../kit/mcp-server.ts";
import type { Cloud } from "./cloud.ts";
import { type Project, projectMaker } from "./project.ts";
import type { Queue, Times } from "./queues.ts";
import { feedFrom, jsonOf, send } from "./service.ts";
import { openTlsDoor } from "./tls-door.ts";

/** A real MCP server, a stack that declares it, and the two queues between them. */

const SERVER = "tools";

export const NOTIFICATION = { server: SERVER, method: LIST_CHANGED } as const;
export const PATIENCE = { timeout: 30_000, interval: 100 } as const;

export type RefreshPath = { readonly cloud: Cloud; readonly notifications: Queue; readonly refreshes: Queue };

export type RefreshProject = {
  readonly server: McpTestServer;
  /** Each time anew, its two queues by what the template says of them. */
  deploy(times?: Times): Promise<RefreshPath>;
};

/** To be called once a file, at its top, and its result in a hook. Ends with the file. */
export function refreshProjectMaker(): () => Promise<RefreshProject> {
  const maker = projectMaker();
  return async () => {
    const server = await startMcpServer({ tools: [aTool("first")] });
    const door = await openTlsDoor(server.url, "mcp.test");
    afterAll(async () => {
      await door.close();
      await server.close();
    });
    const project = maker.synthesise({ servers: { [SERVER]: { url: door.url } } });
    return { server, deploy: (times = {}) => deployPath(project, { times, trusted: door.cert }) };
  };
}

type PathOptions = { readonly times: Times; readonly trusted: string };

async function deployPath(project: Project, options: PathOptions): Promise<RefreshPath> {
  const cloud = await project.deploy(options);
  const address = cloud.output("NotificationsQueueUrl");
  const notifications = cloud.queues.find(({ url }) => url === address);
  if (notifications === undefined) throw new Error(`no queue at ${address}`);
  const { lambda } = feedFrom(cloud, notifications);
  const target = [...cloud.functions.values()].find((each) => each.lambda === lambda)?.queueIn("REFRESH_QUEUE_URL");
  const refreshes = cloud.queues.find(({ id }) => id === target);
  if (refreshes === undefined) throw new Error("what is fed from the notifications names no queue of refreshes");
  return { cloud, notifications, refreshes };
}

/** Names of the server's tools, as the service shows them now; nobody has approved them. */
export async function shownTools(cloud: Cloud): Promise<readonly string[]> {
  const { not_approved: offered } = jsonOf(await send(cloud, { path: "/v1/tools" }));
  return offered.map(({ ref }: { readonly ref: string }) => /^tools\/(.+)@/.exec(ref)?.[1]).sort();
}
