import { Duration } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import { EventSourceMapping, type IFunction } from "aws-cdk-lib/aws-lambda";
import { Queue, QueueEncryption, type QueueProps } from "aws-cdk-lib/aws-sqs";
import type { Construct } from "constructs";
import { toVisibilitySeconds } from "../timeouts.ts";

export type ServiceQueueProps = Pick<
  QueueProps,
  "fifo" | "contentBasedDeduplication" | "deduplicationScope" | "fifoThroughputLimit" | "deliveryDelay"
> & {
  /** Timeout of the function that is fed from the queue. */
  readonly functionSeconds: number;
  /** Timeout of the function that is fed from the dead letters, where there is one. */
  readonly deadLetterFunctionSeconds?: number;
  /** How often a message is handed out before it goes to the dead letters; 5 when left out. */
  readonly maxReceives?: number;
  /** How long a message waits to be taken, less than {@link DEAD_LETTER_DAYS}; 4 when left out. */
  readonly retentionDays?: number;
  /** Undefined: the service's own key. */
  readonly encryptionKey: IKey | undefined;
};

/** Of throttled receives some count as attempts, so fewer would lose what was never tried. */
const MAX_RECEIVES = 5;
const RETENTION_DAYS = 4;
/**
 * The longest there is, and longer than a queue's own: a standard queue's dead letter keeps the age that it came with.
 */
export const DEAD_LETTER_DAYS = 14;

/** A queue with its dead letters beside it, both encrypted and closed to what does not come over TLS. */
export class ServiceQueue extends Queue {
  readonly deadLetters: Queue;

  constructor(scope: Construct, id: string, props: ServiceQueueProps) {
    const { functionSeconds, deadLetterFunctionSeconds, maxReceives, retentionDays, encryptionKey, ...kind } = props;
    const deadLetters = new Queue(scope, `${id}DeadLetters`, {
      ...secure(encryptionKey),
      // The dead letters of an ordered queue are ordered.
      ...(kind.fifo === true ? { fifo: true } : {}),
      ...(deadLetterFunctionSeconds === undefined ? {} : hideFor(deadLetterFunctionSeconds)),
      retentionPeriod: Duration.days(DEAD_LETTER_DAYS),
    });
    super(scope, id, {
      ...secure(encryptionKey),
      ...kind,
      ...hideFor(functionSeconds),
      retentionPeriod: Duration.days(retentionDays ?? RETENTION_DAYS),
      deadLetterQueue: { queue: deadLetters, maxReceiveCount: maxReceives ?? MAX_RECEIVES },
    });
    this.deadLetters = deadLetters;
  }
}

function secure(encryptionKey: IKey | undefined): QueueProps {
  if (encryptionKey === undefined) return { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true };
  return { encryption: QueueEncryption.KMS, encryptionMasterKey: encryptionKey, enforceSSL: true };
}

function hideFor(functionSeconds: number): QueueProps {
  return { visibilityTimeout: Duration.seconds(toVisibilitySeconds(functionSeconds)) };
}

/** To send to a queue, and not to read from it. */
export function toSendStatement(queue: Queue): PolicyStatement {
  return new PolicyStatement({ actions: ["sqs:SendMessage"], resources: [queue.queueArn] });
}

/** What Lambda does in the name of the function that it feeds from a queue. */
export function toConsumeStatement(queue: Queue): PolicyStatement {
  return new PolicyStatement({
    actions: ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"],
    resources: [queue.queueArn],
  });
}

/**
 * Feeds a function from a queue, no more than `maxConcurrency` batches at once. Bounded here and not by reserved
 * concurrency: what that turns away counts as received and ends among the dead letters unseen.
 */
export function feed(
  handler: IFunction,
  queue: Queue,
  { batchSize, maxConcurrency }: { readonly batchSize: number; readonly maxConcurrency: number },
): void {
  new EventSourceMapping(handler, "Feed", {
    target: handler,
    eventSourceArn: queue.queueArn,
    batchSize,
    maxConcurrency,
    reportBatchItemFailures: true,
  });
}
