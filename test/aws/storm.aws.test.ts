import { SendMessageBatchCommand } from "@aws-sdk/client-sqs";
import { beforeAll, describe, expect, test } from "vitest";
import { aTool } from "../kit/mcp-peers.ts";
import type { Queue } from "./kit/queues.ts";
import {
  NOTIFICATION,
  PATIENCE,
  type RefreshPath,
  type RefreshProject,
  refreshProjectMaker,
  shownTools,
} from "./kit/refresh-path.ts";
import { countIn, expectAllAllowed, feedFrom, variableOf } from "./kit/service.ts";

/** Many notifications at once: what becomes of them in the queue of refreshes, and at the server. */

const make = refreshProjectMaker();
let project: RefreshProject;

beforeAll(async () => {
  project = await make();
});

/** In batches of ten, as many at once as keep the queue busy. */
async function sendStorm({ cloud, notifications }: RefreshPath, count: number): Promise<void> {
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
    const path = await project.deploy();
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
    project.server.setTools([aTool("calm")]);
    const path = await project.deploy();
    const { cloud, notifications } = path;
    const before = project.server.listCalls();
    const mappings = cloud.feeds.map((feed) => cloud.startFeed(feed));
    const of = (queue: Queue) => mappings[cloud.feeds.indexOf(feedFrom(cloud, queue))];
    await sendStorm(path, 100);
    project.server.setTools([aTool("after_the_storm")]);
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
    expect(project.server.listCalls() - before).toBeLessThanOrEqual(Math.ceil(seconds / window) + 1);
  });
});
