import { Duration } from "aws-cdk-lib";
import type { IKey } from "aws-cdk-lib/aws-kms";
import { DeduplicationScope, FifoThroughputLimit } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { toDelaySeconds } from "../../functions/contract/refresh-limits.ts";
import { NOTIFY_SECONDS, REFRESH_SECONDS } from "../timeouts.ts";
import { ServiceQueue } from "./service-queue.ts";

export type RefreshQueuesProps = {
  readonly debounceSeconds: number;
  /** Undefined: the service's own key. */
  readonly encryptionKey?: IKey | undefined;
};

/**
 * The way of a notification to a refresh. Notifications come in any order and as often as they like. Refreshes are
 * ordered by server, held back for the window, and one a server and bucket. What a function could not take care of in
 * five attempts waits among the dead letters.
 */
export class RefreshQueues extends Construct {
  readonly notifications: ServiceQueue;
  readonly refreshes: ServiceQueue;

  constructor(scope: Construct, id: string, { debounceSeconds, encryptionKey }: RefreshQueuesProps) {
    super(scope, id);
    this.notifications = new ServiceQueue(this, "Notifications", { encryptionKey, functionSeconds: NOTIFY_SECONDS });
    this.refreshes = new ServiceQueue(this, "Refreshes", {
      encryptionKey,
      functionSeconds: REFRESH_SECONDS,
      fifo: true,
      // The id is the sender's: server and bucket. Two scopes mean the same for it, since a group is a server.
      contentBasedDeduplication: false,
      deduplicationScope: DeduplicationScope.QUEUE,
      fifoThroughputLimit: FifoThroughputLimit.PER_QUEUE,
      deliveryDelay: Duration.seconds(toDelaySeconds(debounceSeconds)),
    });
  }
}
