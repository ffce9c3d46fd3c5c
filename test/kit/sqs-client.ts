import { randomUUID } from "node:crypto";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  type SQSClient,
  type SQSClientConfig,
} from "@aws-sdk/client-sqs";
import { createSqsClient } from "../../functions/aws/sqs-event-queue.ts";
import { TEST_CREDENTIALS } from "./s3-client.ts";

/** The product's own client, pointed at an emulator; only the address and the patience differ. */
export function createTestSqsClient(url: string, overrides: SQSClientConfig = {}): SQSClient {
  return createSqsClient({ endpoint: url, region: "eu-central-1", credentials: TEST_CREDENTIALS, ...overrides });
}

export type TestQueue = {
  readonly url: string;
  /** Takes them out. */
  deadBodies(): Promise<readonly string[]>;
};

/** An empty queue with dead letters of its own. */
export async function createTestQueue(
  client: SQSClient,
  settings: {
    readonly fifo: boolean;
    readonly delaySeconds: number;
    readonly visibilitySeconds: number;
    readonly maxReceives: number;
  },
): Promise<TestQueue> {
  const name = `test-${randomUUID()}`;
  const suffix = settings.fifo ? ".fifo" : "";
  const order: Record<string, string> = settings.fifo ? { FifoQueue: "true" } : {};
  const dead = await createQueue(client, `${name}-dead${suffix}`, order);
  const described = new GetQueueAttributesCommand({ QueueUrl: dead, AttributeNames: ["QueueArn"] });
  const { Attributes } = await client.send(described);
  const url = await createQueue(client, `${name}${suffix}`, {
    ...order,
    DelaySeconds: String(settings.delaySeconds),
    VisibilityTimeout: String(settings.visibilitySeconds),
    MaximumMessageSize: "262144",
    RedrivePolicy: JSON.stringify({
      deadLetterTargetArn: Attributes?.QueueArn,
      maxReceiveCount: settings.maxReceives,
    }),
  });
  return {
    url,
    deadBodies: async () => {
      const { Messages = [] } = await client.send(
        new ReceiveMessageCommand({ QueueUrl: dead, MaxNumberOfMessages: 10 }),
      );
      return Messages.flatMap(({ Body }) => Body ?? []);
    },
  };
}

async function createQueue(
  client: SQSClient,
  QueueName: string,
  attributes: Readonly<Record<string, string>>,
): Promise<string> {
  const { QueueUrl = "" } = await client.send(new CreateQueueCommand({ QueueName, Attributes: { ...attributes } }));
  return QueueUrl;
}
