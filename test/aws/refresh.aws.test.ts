import { ReceiveMessageCommand, SendMessageBatchCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIST_CHANGED } from "../../functions/contract/notification.ts";
import { aTool } from "../kit/mcp-peers.ts";
import { type McpTestServer, startMcpServer } from "../kit/mcp-server.ts";
import type { Cloud } from "./kit/cloud.ts";
import { type Project, projectMaker } from "./kit/project.ts";
import type { Queue } from "./kit/queues.ts";
import {
  behindRoute,
  countIn,
  expectAllAllowed,
  feedFrom,
  jsonOf,
  redriveOf,
  send,
  variableOf,
} from "./kit/service.ts";
import { openTlsDoor, type TlsDoor } from "./kit/tls-door.ts";

/** Notifications through real queues and the deployed bundles to a real MCP server, and what the service shows then. */

const SERVER = "tools";
const PATIENCE = { timeout: 30_000, interval: 100 } as const;

const maker = projectMaker();
let server: McpTestServer;
let door: TlsDoor;
let project: Project;

beforeAll(async () => {
  server = await startMcpServer({ tools: [aTool("first")] });
  door = await openTlsDoor(server.url, "mcp.test");
  project = maker.synthesise({ servers: { [SERVER]: { url: door.url } } });
});

afterAll(async () => {
  await door.close();
  await server.close();
});

const NOTIFICATION = { server: SERVER, method: LIST_CHANGED } as const;

/** Names of the server's tools, as the service shows them now; nobody has approved them. */
async function shownTools(cloud: Cloud): Promise<readonly string[]> {
  const { not_approved: offered } = jsonOf(await send(cloud, { path: "/v1/tools" }));
  return offered.map(({ ref }: { readonly ref: string }) => /^tools\/(.+)@/.exec(ref)?.[1]).sort();
}

type Path = { readonly cloud: Cloud; readonly notifications: Queue; readonly refreshes: Queue };

/** The stack, and its two queues by what the template says of them. */
async function deployPath(times: NonNullable<Parameters<Project["deploy"]>[0]>["times"] = {}): Promise<Path> {
  const cloud = await project.deploy({ trusted: door.cert, times });
  const address = cloud.output("NotificationsQueueUrl");
  const notifications = cloud.queues.find(({ url }) => url === address);
  if (notifications === undefined) throw new Error(`no queue at ${address}`);
  const { lambda } = feedFrom(cloud, notifications);
  const target = [...cloud.functions.values()].find((each) => each.lambda === lambda)?.queueIn("REFRESH_QUEUE_URL");
  const refreshes = cloud.queues.find(({ id }) => id === target);
  if (refreshes === undefined) throw new Error("what is fed from the notifications names no queue of refreshes");
  return { cloud, notifications, refreshes };
}

describe("a notification", () => {
  let cloud: Cloud;
  let notifications: Queue;

  beforeAll(async () => {
    ({ cloud, notifications } = await deployPath());
    for (const feed of cloud.feeds) cloud.startFeed(feed);
  });

  test("over HTTP makes one refresh, and the warm function behind the routes shows what the server has", async () => {
    expect(await shownTools(cloud)).toEqual([]);
    const before = server.listCalls();
    const answer = await send(cloud, { method: "POST", path: "/v1/notifications", json: NOTIFICATION });
    expect({ status: answer.status, body: jsonOf(answer) }).toEqual({
      status: 202,
      body: { queued: true, server: SERVER },
    });
    await expect.poll(() => shownTools(cloud), PATIENCE).toEqual(["first"]);
    expect(server.listCalls() - before).toBe(1);
    expect(behindRoute(cloud, "GET", "/v1/tools").lambda.coldStarts()).toBe(1);
    expect(jsonOf(await send(cloud, { path: "/v1/refreshes/latest" }))).toMatchObject({
      generation: 1,
      servers: [{ name: SERVER, status: "fresh" }],
    });
  });

  test("put straight into the queue does the same", async () => {
    server.setTools([aTool("first"), aTool("second")]);
    const before = server.listCalls();
    const message = { QueueUrl: notifications.url, MessageBody: JSON.stringify(NOTIFICATION) };
    await cloud.sqs.send(new SendMessageCommand(message));
    await expect.poll(() => shownTools(cloud), PATIENCE).toEqual(["first", "second"]);
    expect(server.listCalls() - before).toBe(1);
    expect(jsonOf(await send(cloud, { path: "/v1/refreshes/latest" })).generation).toBe(2);
  });

  test("leaves nothing in any queue, and no function asks for what its role does not allow", async () => {
    for (const queue of cloud.queues) {
      await expect
        .poll(async () => ({ queue: queue.id, left: await countIn(cloud, queue) }), PATIENCE)
        .toEqual({
          queue: queue.id,
          left: 0,
        });
    }
    expectAllAllowed(cloud);
  });
});

/** In batches of ten, as many at once as keep the queue busy. */
async function sendStorm({ cloud, notifications }: Path, count: number): Promise<void> {
  const batches = Array.from({ length: count / 10 }, (_, batch) => batch);
  const Entries = Array.from({ length: 10 }, (_, index) => ({
    Id: `${index}`,
    MessageBody: JSON.stringify(NOTIFICATION),
  }));
  const work = async () => {
    while (batches.pop() !== undefined) {
      const { Failed = [] } = await cloud.sqs.send(
        new SendMessageBatchCommand({ QueueUrl: notifications.url, Entries }),
      );
      expect(Failed).toEqual([]);
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
}

describe("a storm of notifications at one server", () => {
  test("of 10,000 leaves ⌈T/W⌉ + 1 delayed messages at the most, for its span T by the queue's own clock", async () => {
    const path = await deployPath();
    const { cloud, notifications, refreshes } = path;
    const feed = feedFrom(cloud, notifications);
    const mapping = cloud.startFeed(feed);
    await sendStorm(path, 10_000);
    const handled = () => mapping.deliveries.reduce((sum, { messages }) => sum + messages.length, 0);
    await expect.poll(handled, { ...PATIENCE, timeout: 50_000 }).toBe(10_000);
    expect(mapping.deliveries.filter(({ failed }) => failed.size > 0)).toEqual([]);
    const sent = mapping.deliveries.flatMap(({ messages }) =>
      messages.map(({ Attributes }) => Number(Attributes?.SentTimestamp)),
    );
    const seconds = (Math.max(...sent) - Math.min(...sent)) / 1000;
    const window = Number(variableOf(feed.lambda, "DEBOUNCE_SECONDS"));
    const kept = await countIn(cloud, refreshes);
    expect(kept).toBeGreaterThanOrEqual(1);
    expect(kept).toBeLessThanOrEqual(Math.ceil(seconds / window) + 1);
    expectAllAllowed(cloud);
  });

  test("fetches the server's list ⌈T/W⌉ + 1 times at the most, and once after its last", async () => {
    server.setTools([aTool("calm")]);
    const path = await deployPath();
    const { cloud, notifications } = path;
    const before = server.listCalls();
    const mappings = cloud.feeds.map((feed) => cloud.startFeed(feed));
    const of = (queue: Queue) => mappings[cloud.feeds.indexOf(feedFrom(cloud, queue))];
    await sendStorm(path, 100);
    server.setTools([aTool("after_the_storm")]);
    await sendStorm(path, 10);
    await expect.poll(() => shownTools(cloud), PATIENCE).toEqual(["after_the_storm"]);
    for (const queue of cloud.queues) await expect.poll(() => countIn(cloud, queue), PATIENCE).toBe(0);
    const sent =
      of(notifications)?.deliveries.flatMap(({ messages }) =>
        messages.map(({ Attributes }) => Number(Attributes?.SentTimestamp)),
      ) ?? [];
    expect(sent.length).toBe(110);
    const seconds = (Math.max(...sent) - Math.min(...sent)) / 1000;
    const window = Number(variableOf(feedFrom(cloud, notifications).lambda, "DEBOUNCE_SECONDS"));
    expect(server.listCalls() - before).toBeLessThanOrEqual(Math.ceil(seconds / window) + 1);
  });
});

describe("a message that cannot be read", () => {
  test("is among the dead letters after as many attempts as the template gives, and no longer in the queue", async () => {
    const { cloud, notifications } = await deployPath({ visibility: 0.001 });
    const { maxReceives, deadLetters } = redriveOf(cloud, notifications);
    const mapping = cloud.startFeed(feedFrom(cloud, notifications));
    const bad = JSON.stringify({ ...NOTIFICATION, server: "unheard-of" });
    const sent = [bad, JSON.stringify(NOTIFICATION)].map((MessageBody, index) => ({ Id: `${index}`, MessageBody }));
    await cloud.sqs.send(new SendMessageBatchCommand({ QueueUrl: notifications.url, Entries: sent }));
    await expect.poll(() => countIn(cloud, deadLetters), PATIENCE).toBe(1);
    expect(await countIn(cloud, notifications)).toBe(0);
    const attempts = mapping.deliveries.filter(({ failed }) => failed.size > 0);
    expect(attempts.length).toBe(maxReceives);
    const { Messages = [] } = await cloud.sqs.send(new ReceiveMessageCommand({ QueueUrl: deadLetters.url }));
    expect(Messages.map(({ Body }) => Body)).toEqual([bad]);
  });
});

describe("the schedule", () => {
  test("queues a notification for a server of which nothing is known, and none for one that was just fetched", async () => {
    const { cloud, notifications } = await deployPath();
    await cloud.tick();
    expect(await countIn(cloud, notifications)).toBe(1);
    const mappings = cloud.feeds.map((feed) => cloud.startFeed(feed));
    await expect.poll(async () => (await shownTools(cloud)).length, PATIENCE).toBe(1);
    const told = mappings.flatMap(({ deliveries }) => deliveries.flatMap(({ messages }) => messages));
    expect(told.map(({ Body = "" }) => JSON.parse(Body).source)).toContain("schedule");
    await expect.poll(() => countIn(cloud, notifications), PATIENCE).toBe(0);
    await cloud.tick();
    expect(await countIn(cloud, notifications)).toBe(0);
    expectAllAllowed(cloud);
  });
});
