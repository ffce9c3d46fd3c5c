import { CreateQueueCommand, GetQueueAttributesCommand, type SQSClient } from "@aws-sdk/client-sqs";
import * as z from "zod";
import { type Made, type Resolution, type Resources, resolve, resourcesOf } from "./template.ts";

/** The queues of the template, made in an emulator with every attribute that the template gives them. */

export type Queue = {
  readonly id: string;
  readonly name: string;
  readonly arn: string;
  readonly url: string;
  /** Where its messages go that nobody could take care of; undefined: nowhere. */
  readonly redrive: { readonly deadLetterArn: string; readonly maxReceives: number } | undefined;
};

/** Factors on times, so that a test need not wait for them; everything else is as the template has it. */
export type Times = {
  /** On the visibility of messages, rounded up to a whole second. */
  readonly visibility?: number;
  /** On the time that a function has. */
  readonly functions?: number;
};

/** What is not named here is refused: a property that is passed over would look as if it held. */
const QueueProperties = z.strictObject({
  DelaySeconds: z.int().optional(),
  VisibilityTimeout: z.int().default(30),
  MessageRetentionPeriod: z.int().optional(),
  MaximumMessageSize: z.int().optional(),
  ReceiveMessageWaitTimeSeconds: z.int().optional(),
  FifoQueue: z.literal(true).optional(),
  ContentBasedDeduplication: z.boolean().optional(),
  DeduplicationScope: z.string().optional(),
  FifoThroughputLimit: z.string().optional(),
  RedrivePolicy: z.strictObject({ deadLetterTargetArn: z.unknown(), maxReceiveCount: z.int() }).optional(),
  SqsManagedSseEnabled: z.boolean().optional(),
});
type QueueProperties = z.infer<typeof QueueProperties>;

export type QueueOptions = {
  readonly client: SQSClient;
  readonly resources: Resources;
  /** Has what the template needs beside the queues. */
  readonly made: ReadonlyMap<string, Made>;
  readonly times: Times;
};

export async function makeQueues({ client, resources, made, times }: QueueOptions): Promise<readonly Queue[]> {
  const known = new Map(made);
  const queues: Queue[] = [];
  let left = resourcesOf(resources, "AWS::SQS::Queue").map(([id, properties]) => ({
    id,
    properties: QueueProperties.parse(properties),
  }));
  while (left.length > 0) {
    const ready = left.filter(({ properties }) => deadLettersOf(properties, resources).every((id) => known.has(id)));
    if (ready.length === 0) throw new Error("queues are each other's dead letters");
    for (const { id, properties } of ready) {
      const queue = await makeQueue(client, id, toAttributes(properties, { made: known }, times));
      queues.push(queue);
      known.set(id, toMade(queue, queue.url));
    }
    left = left.filter(({ id }) => !known.has(id));
  }
  return queues;
}

/** `url`: by which whoever refers to the queue reaches it. */
export function toMade({ arn, name }: Queue, url: string): Made {
  return { ref: url, attributes: { Arn: arn, QueueName: name, QueueUrl: url } };
}

/** Logical ids of the queues that must be there before. */
function deadLettersOf({ RedrivePolicy }: QueueProperties, resources: Resources): readonly string[] {
  const text = JSON.stringify(RedrivePolicy ?? null);
  return resourcesOf(resources, "AWS::SQS::Queue").flatMap(([id]) => (text.includes(`"${id}"`) ? id : []));
}

function toAttributes(properties: QueueProperties, resolution: Resolution, times: Times): Record<string, string> {
  const { DelaySeconds = 0, VisibilityTimeout, RedrivePolicy, ...rest } = properties;
  const scaled = {
    DelaySeconds,
    VisibilityTimeout: Math.ceil(VisibilityTimeout * (times.visibility ?? 1)),
  };
  const redrive =
    RedrivePolicy === undefined ? {} : { RedrivePolicy: JSON.stringify(resolve(RedrivePolicy, resolution)) };
  const plain = Object.entries({ ...rest, ...scaled }).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(plain.map(([name, value]) => [name, String(value)])), ...redrive };
}

async function makeQueue(client: SQSClient, id: string, attributes: Record<string, string>): Promise<Queue> {
  const name = `SkillBroker-${id}${attributes.FifoQueue === "true" ? ".fifo" : ""}`;
  const { QueueUrl: url = "" } = await client.send(new CreateQueueCommand({ QueueName: name, Attributes: attributes }));
  const { Attributes = {} } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["All"] }),
  );
  const kept = new Map(Object.entries(Attributes));
  const lost = Object.entries(attributes).filter(([key, value]) => kept.get(key) !== value);
  if (lost.length > 0)
    throw new Error(`${name} was made without ${JSON.stringify(lost)}: ${JSON.stringify(Attributes)}`);
  return { id, name, arn: Attributes.QueueArn ?? "", url, redrive: readRedrive(attributes.RedrivePolicy) };
}

const Redrive = z.object({ deadLetterTargetArn: z.string(), maxReceiveCount: z.int() });

function readRedrive(json: string | undefined): Queue["redrive"] {
  if (json === undefined) return undefined;
  const { deadLetterTargetArn: deadLetterArn, maxReceiveCount: maxReceives } = Redrive.parse(JSON.parse(json));
  return { deadLetterArn, maxReceives };
}
