import { Duration } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { EventSourceMapping, type IFunction } from "aws-cdk-lib/aws-lambda";
import { DeduplicationScope, FifoThroughputLimit, Queue, QueueEncryption, type QueueProps } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { toDelaySeconds } from "../../functions/contract/refresh-limits.ts";
import { NOTIFY_SECONDS, REFRESH_SECONDS, toVisibilitySeconds } from "../timeouts.ts";
import { type AlarmTexts, alarmAtDeadLetter } from "./alarms.ts";

export type RefreshQueuesProps = { readonly debounceSeconds: number };

/**
 * The way of a notification to a refresh. Notifications come in any order and as often as they like. Refreshes are
 * ordered by server, held back for the window, and one a server and bucket. What a function could not take care of in
 * five attempts waits among the dead letters.
 */
export class RefreshQueues extends Construct {
  readonly notifications: Queue;
  readonly refreshes: Queue;

  constructor(scope: Construct, id: string, { debounceSeconds }: RefreshQueuesProps) {
    super(scope, id);
    this.notifications = addQueue(this, "Notifications", {
      alarm: NOTIFICATION_DIED,
      visibilityTimeout: Duration.seconds(toVisibilitySeconds(NOTIFY_SECONDS)),
    });
    this.refreshes = addQueue(this, "Refreshes", {
      alarm: REFRESH_DIED,
      fifo: true,
      // The id is the sender's: server and bucket. Two scopes mean the same for it, since a group is a server.
      contentBasedDeduplication: false,
      deduplicationScope: DeduplicationScope.QUEUE,
      fifoThroughputLimit: FifoThroughputLimit.PER_QUEUE,
      deliveryDelay: Duration.seconds(toDelaySeconds(debounceSeconds)),
      visibilityTimeout: Duration.seconds(toVisibilitySeconds(REFRESH_SECONDS)),
    });
  }
}

const MAX_RECEIVES = 5;
const RETENTION = Duration.days(4);
/** Longer than the queue's own: a standard queue's dead letter keeps the age that it came with. */
const DEAD_LETTER_RETENTION = Duration.days(14);

const NOTIFICATION_DIED: AlarmTexts = {
  description:
    "A notification failed five times and waits here for 14 days; its server is asked again by the schedule alone. The " +
    "log of the notify function says why: the message cannot be read or names a server that is not deployed, or the " +
    "bucket or the queue of refreshes could not be written. Put that right and redrive the queue, or purge it of what " +
    "nobody needs.",
};
const REFRESH_DIED: AlarmTexts = {
  description:
    "A refresh failed five times and waits here for 14 days; the catalog does not show what it was asked for. The log " +
    "of the refresh function says why: the bucket could not be read or written, the function ran out of time, or no " +
    "such server is deployed; one that does not answer is no reason. Put that right and redrive the queue, or " +
    "purge it when the server was refreshed since.",
};

type AddedQueue = QueueProps & { readonly alarm: AlarmTexts };

function addQueue(scope: Construct, id: string, { alarm, ...props }: AddedQueue): Queue {
  const secured = { encryption: QueueEncryption.SQS_MANAGED, enforceSSL: true } as const;
  const deadLetters = new Queue(scope, `${id}DeadLetters`, {
    ...secured,
    // The dead letters of an ordered queue are ordered.
    ...(props.fifo === true ? { fifo: true } : {}),
    retentionPeriod: DEAD_LETTER_RETENTION,
  });
  alarmAtDeadLetter(deadLetters, alarm);
  return new Queue(scope, id, {
    ...secured,
    ...props,
    retentionPeriod: RETENTION,
    deadLetterQueue: { queue: deadLetters, maxReceiveCount: MAX_RECEIVES },
  });
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
