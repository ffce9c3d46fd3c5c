import { ReceiveMessageCommand, SendMessageBatchCommand, SendMessageCommand } from "@aws-sdk/client-sqs";
import { beforeAll, describe, expect, test } from "vitest";
import { aTool } from "../kit/mcp-peers.ts";
import type { Cloud } from "./kit/cloud.ts";
import type { Queue } from "./kit/queues.ts";
import { NOTIFICATION, PATIENCE, type RefreshProject, refreshProjectMaker, shownTools } from "./kit/refresh-path.ts";
import { behindRoute, countIn, expectAllAllowed, feedFrom, jsonOf, redriveOf, send } from "./kit/service.ts";

/** Notifications through real queues and the deployed bundles to a real MCP server, and what the service shows then. */

const make = refreshProjectMaker();
let project: RefreshProject;

beforeAll(async () => {
  project = await make();
});

describe("a notification", () => {
  let cloud: Cloud;
  let notifications: Queue;

  beforeAll(async () => {
    ({ cloud, notifications } = await project.deploy());
    for (const feed of cloud.feeds) cloud.startFeed(feed);
  });

  test("over HTTP makes one refresh, and the warm function behind the routes shows what the server has", async () => {
    expect(await shownTools(cloud)).toEqual([]);
    const before = project.server.listCalls();
    const answer = await send(cloud, { method: "POST", path: "/v1/notifications", json: NOTIFICATION });
    expect({ status: answer.status, body: jsonOf(answer) }).toEqual({
      status: 202,
      body: { queued: true, server: NOTIFICATION.server },
    });
    await expect.poll(() => shownTools(cloud), PATIENCE).toEqual(["first"]);
    expect(project.server.listCalls() - before).toBe(1);
    expect(behindRoute(cloud, "GET", "/v1/tools").lambda.coldStarts()).toBe(1);
    expect(jsonOf(await send(cloud, { path: "/v1/refreshes/latest" }))).toMatchObject({
      generation: 1,
      servers: [{ name: NOTIFICATION.server, status: "fresh" }],
    });
  });

  test("put straight into the queue does the same", async () => {
    project.server.setTools([aTool("first"), aTool("second")]);
    const before = project.server.listCalls();
    const message = { QueueUrl: notifications.url, MessageBody: JSON.stringify(NOTIFICATION) };
    await cloud.sqs.send(new SendMessageCommand(message));
    await expect.poll(() => shownTools(cloud), PATIENCE).toEqual(["first", "second"]);
    expect(project.server.listCalls() - before).toBe(1);
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

describe("a message that cannot be read", () => {
  test("is among the dead letters after as many attempts as the template gives, and no longer in the queue", async () => {
    const { cloud, notifications } = await project.deploy({ visibility: 0.001 });
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
    const { cloud, notifications } = await project.deploy();
    project.server.setTools([aTool("scheduled")]);
    await cloud.tick();
    expect(await countIn(cloud, notifications)).toBe(1);
    const mappings = cloud.feeds.map((feed) => cloud.startFeed(feed));
    await expect.poll(() => shownTools(cloud), PATIENCE).toEqual(["scheduled"]);
    const told = mappings.flatMap(({ deliveries }) => deliveries.flatMap(({ messages }) => messages));
    expect(told.map(({ Body = "" }) => JSON.parse(Body).source)).toContain("schedule");
    await expect.poll(() => countIn(cloud, notifications), PATIENCE).toBe(0);
    await cloud.tick();
    expect(await countIn(cloud, notifications)).toBe(0);
    expectAllAllowed(cloud);
  });
});
