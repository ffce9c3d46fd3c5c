import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildApp } from "fauxqs";
import { describe, test } from "vitest";
import { createSqsEventQueue } from "../../functions/aws/sqs-event-queue.ts";
import { type EmbeddedEventQueue, openEmbeddedEventQueue } from "../../local/embedded-event-queue.ts";
import { createManualClock } from "../kit/manual-clock.ts";
import { createMemoryEventQueue } from "../kit/memory-event-queue.ts";
import { findMoto, startMoto } from "../kit/moto.ts";
import { createTestQueue, createTestSqsClient } from "../kit/sqs-client.ts";
import { describeEventQueue, type OpenedQueues } from "./event-queue-contract.ts";

const START = Date.UTC(2027, 0, 31, 23, 59, 30, 750);

describeEventQueue("the tests' own queue in memory", {
  start: async () => ({
    open: async ({ fifo, delaySeconds, visibilitySeconds, maxReceives }) => {
      const clock = createManualClock(START);
      const times = { delayMs: delaySeconds * 1000, visibilityMs: visibilitySeconds * 1000 };
      const queue = createMemoryEventQueue({ clock: clock.now, fifo, maxReceives, ...times });
      return { queue, peer: queue, deadBodies: async () => queue.deadLetters().map(({ body }) => body), clock };
    },
    close: async () => undefined,
  }),
});

describeEventQueue("the embedded queue", { start: startEmbedded });

/** Every queue in one file, by two connections, as two processes would have it. */
async function startEmbedded(): Promise<OpenedQueues> {
  const directory = mkdtempSync(join(tmpdir(), "skillbroker-queue-"));
  const opened: EmbeddedEventQueue[] = [];
  return {
    open: async (settings) => {
      const clock = createManualClock(START);
      const name = `queue-${opened.length}`;
      const open = () =>
        openEmbeddedEventQueue({ directory, name, clock: clock.now, log: () => undefined, ...settings });
      const [queue, peer] = [open(), open()];
      opened.push(queue, peer);
      return { queue, peer, deadBodies: async () => queue.deadLetters().map(({ body }) => body), clock };
    },
    close: async () => {
      for (const queue of opened) queue.close();
      rmSync(directory, { recursive: true });
    },
  };
}

function startSqs(url: string, stop: () => Promise<void>): OpenedQueues {
  const client = createTestSqsClient(url);
  return {
    open: async (settings) => {
      const { url: queueUrl, deadBodies } = await createTestQueue(client, settings);
      return {
        queue: createSqsEventQueue({ client, queueUrl }),
        peer: createSqsEventQueue({ client: createTestSqsClient(url), queueUrl }),
        deadBodies,
      };
    },
    close: stop,
  };
}

const ONE_OF_A_GROUP = "fauxqs 2.4 hands out one message of a group at a time";
const UNMOVED = "no test can move the clock of an emulator";

describeEventQueue("SQS, over fauxqs", {
  start: async () => {
    const app = buildApp({ logger: false });
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    return startSqs(url, async () => app.close());
  },
  exceptions: {
    "a character beyond U+FFFF comes out as it went in": "fauxqs 2.4 takes half of one for a mistake",
    "the older receipt of what was handed out again is told to be void": "fauxqs 2.4 removes by any receipt, it says",
    "a receipt that nobody gave is void": "fauxqs 2.4 removes by any receipt, it says",
    "several messages of a group may come together, in their order": ONE_OF_A_GROUP,
    "what was given back waits while a later message of its group is in hand": ONE_OF_A_GROUP,
  },
  unseen: {
    "a duplicate is known for five minutes from its original and not for longer": UNMOVED,
  },
});

const UNVOIDED = "moto 5.2 takes every receipt that a message ever had for good";
const moto = findMoto();

if (moto === undefined) {
  describe("SQS, over moto, as an event queue", () => {
    test.skip("left out: no python3 with moto[server] on this machine", () => undefined);
  });
} else {
  describeEventQueue("SQS, over moto", {
    start: async () => {
      const server = await startMoto(moto);
      return startSqs(server.url, server.close);
    },
    exceptions: {
      "a body of 262,144 bytes is kept, one byte more is refused": "moto 5.2 counts characters",
      "a body that XML 1.0 cannot carry is refused, and so is none": "moto 5.2 keeps any text",
      "what was handed out again does not go by the older receipt": UNVOIDED,
      "the older receipt of what was handed out again is told to be void": UNVOIDED,
      "what was given back cannot be hidden by the same receipt": UNVOIDED,
      "a duplicate is dropped even when its original is gone": "moto 5.2 looks for duplicates among what is there",
    },
    unseen: {
      "a duplicate is known for five minutes from its original and not for longer": UNMOVED,
    },
  });
}
