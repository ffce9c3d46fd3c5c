import { Duration } from "aws-cdk-lib";
import { Rule, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import { Construct } from "constructs";
import { toEnvironments } from "../deploy-settings.ts";
import { NOTIFY_SECONDS, RECONCILE_SECONDS, REFRESH_SECONDS } from "../timeouts.ts";
import { ServiceFunction, type ServiceParts, SMALL_MIB, WHOLE_PROCESSOR_MIB } from "./service-function.ts";
import { feed, toConsumeStatement, toSendStatement } from "./service-queue.ts";

/**
 * The least that Lambda takes. All notifications of a server meet in one record, so more at once would only contend.
 */
const NOTIFY_CONCURRENCY = 2;
/** More in a batch make fewer sends and notes; a notification does not wait for others to fill it. */
const NOTIFICATIONS_AT_ONCE = 10;
/**
 * One message a batch: a server that answers slowly holds up its own group, and up to so many slow ones nobody else.
 */
const REFRESH_CONCURRENCY = 10;

/** The functions that turn notifications into refreshes, and the clock that asks for those that nobody announced. */
export class RefreshPath extends Construct {
  readonly notify: ServiceFunction;
  readonly refresh: ServiceFunction;
  readonly reconcile: ServiceFunction;

  constructor(scope: Construct, id: string, parts: ServiceParts) {
    super(scope, id);
    this.notify = addNotify(this, parts);
    this.refresh = addRefresh(this, parts);
    this.reconcile = addReconcile(this, parts);
    if (parts.servers.names.length > 0) runEveryMinute(this, this.reconcile);
  }
}

function addNotify(scope: Construct, parts: ServiceParts): ServiceFunction {
  const { settings, queues } = parts;
  const notify = new ServiceFunction(scope, "Notify", {
    name: "notify",
    parts,
    description: "skillbroker: notifications become delayed refreshes, one a server and window",
    memoryMiB: SMALL_MIB,
    timeoutSeconds: NOTIFY_SECONDS,
    environment: {
      ...toEnvironments(settings).notify,
      REFRESH_QUEUE_URL: queues.refreshes.queueUrl,
    },
    statements: [toConsumeStatement(queues.notifications), toSendStatement(queues.refreshes)],
  });
  feed(notify.handler, queues.notifications, { batchSize: NOTIFICATIONS_AT_ONCE, maxConcurrency: NOTIFY_CONCURRENCY });
  return notify;
}

function addRefresh(scope: Construct, parts: ServiceParts): ServiceFunction {
  const { settings, queues } = parts;
  const refresh = new ServiceFunction(scope, "Refresh", {
    name: "refresh",
    parts,
    description: "skillbroker: fetches the lists of MCP servers and publishes the catalog",
    memoryMiB: WHOLE_PROCESSOR_MIB,
    timeoutSeconds: REFRESH_SECONDS,
    environment: toEnvironments(settings).refresh,
    statements: [toConsumeStatement(queues.refreshes)],
  });
  feed(refresh.handler, queues.refreshes, { batchSize: 1, maxConcurrency: REFRESH_CONCURRENCY });
  return refresh;
}

function addReconcile(scope: Construct, parts: ServiceParts): ServiceFunction {
  const { settings, queues } = parts;
  return new ServiceFunction(scope, "Reconcile", {
    name: "reconcile",
    parts,
    description: "skillbroker: asks for the lists of MCP servers that are due",
    memoryMiB: SMALL_MIB,
    timeoutSeconds: RECONCILE_SECONDS,
    // The next minute is the next attempt.
    retryAttempts: 0,
    environment: {
      ...toEnvironments(settings).reconcile,
      NOTIFICATIONS_QUEUE_URL: queues.notifications.queueUrl,
    },
    statements: [toSendStatement(queues.notifications)],
  });
}

/** Without servers nothing can be due, and a function that ran for nothing would be paid for. */
function runEveryMinute(scope: Construct, { handler }: ServiceFunction): void {
  const schedule = Schedule.rate(Duration.minutes(1));
  new Rule(scope, "EveryMinute", { schedule, targets: [new LambdaFunction(handler, { retryAttempts: 0 })] });
}
