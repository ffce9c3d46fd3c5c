import { Template } from "aws-cdk-lib/assertions";
import { expect, test } from "vitest";
import { resourcesOf, stackMaker } from "../kit/stack-template.ts";

const makeStack = stackMaker();
const queuesWith = (settings: Readonly<Record<string, unknown>>) =>
  resourcesOf(Template.fromStack(makeStack({ settings })), "AWS::SQS::Queue");
const queues = queuesWith({});

test("notifications come in any order, refreshes in that of their server", () => {
  expect(queues.get("QueuesNotifications").FifoQueue).toBeUndefined();
  expect(queues.get("QueuesRefreshes").FifoQueue).toBe(true);
});

test("a refresh is dropped by the sender's id alone, never by its text", () => {
  expect(queues.get("QueuesRefreshes")).toMatchObject({
    ContentBasedDeduplication: false,
    DeduplicationScope: "queue",
    FifoThroughputLimit: "perQueue",
  });
});

test("a refresh is held back for the window and half a second, a notification not at all", () => {
  expect(queues.get("QueuesNotifications").DelaySeconds).toBeUndefined();
  expect(queues.get("QueuesRefreshes").DelaySeconds).toBe(1);
  expect(queuesWith({ debounceSeconds: 2.6 }).get("QueuesRefreshes").DelaySeconds).toBe(4);
});
