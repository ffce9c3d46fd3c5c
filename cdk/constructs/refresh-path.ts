import { Duration } from "aws-cdk-lib";
import { Rule, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import { Construct } from "constructs";
import type { NotifyEnv, ReconcileEnv, RefreshEnv } from "../../functions/contract/env.ts";
import { toEnvironments } from "../deploy-settings.ts";
import { NOTIFY_SECONDS, RECONCILE_SECONDS, REFRESH_SECONDS } from "../timeouts.ts";
import { type AlarmTexts, alarmAtLoop } from "./alarms.ts";
import { STORE_ACCESS } from "./artifact-bucket.ts";
import { feed, toConsumeStatement, toSendStatement } from "./refresh-queues.ts";
import { toSecretStatements } from "./secret-access.ts";
import {
  ERRORS,
  REFUSED_REPOSITORIES,
  ServiceFunction,
  type ServiceParts,
  UNAVAILABLE_SERVERS,
  WHOLE_PROCESSOR_MIB,
} from "./service-function.ts";

/** For functions that wait for AWS most of the time. */
const SMALL_MIB = 512;
/** The least that Lambda takes. All notifications of a server meet in one record, so more at once would only contend. */
const NOTIFY_CONCURRENCY = 2;
/** More in a batch make fewer sends and notes; a notification does not wait for others to fill it. */
const NOTIFICATIONS_AT_ONCE = 10;
/** One message a batch: a server that answers slowly holds up its own group, and up to so many slow ones nobody else. */
const REFRESH_CONCURRENCY = 10;

const NOTIFY_LOOPED: AlarmTexts = {
  description:
    "AWS ended a loop through the notify function: what it sent came back to it as a notification some sixteen times. " +
    "Nothing in this stack does that. Look for what reads the queue of refreshes, or listens to a server, and sends " +
    "notifications in answer; detach it, then see to the dead letters, where the dropped messages end.",
};
const REFRESH_LOOPED: AlarmTexts = {
  description:
    "AWS ended a loop through the refresh function: its fetching made it run again some sixteen times. Nothing in this " +
    "stack does that. Look for an MCP server of this account that notifies whenever its list is fetched, or for what " +
    "listens to the bucket and sends notifications; put it right, then see to the dead letters, where the dropped " +
    "messages end.",
};

/** The functions that turn notifications into refreshes, and the clock that asks for those that nobody announced. */
export class RefreshPath extends Construct {
  constructor(scope: Construct, id: string, parts: ServiceParts) {
    super(scope, id);
    addNotify(this, parts);
    addRefresh(this, parts);
    const reconcile = addReconcile(this, parts);
    if (parts.servers.names.length > 0) runEveryMinute(this, reconcile);
  }
}

function addNotify(scope: Construct, { settings, bundles, store, queues }: ServiceParts): void {
  const { handler } = new ServiceFunction(scope, "Notify", {
    description: "skillbroker: notifications become delayed refreshes, one a server and window",
    code: bundles.notify.directory,
    memoryMiB: SMALL_MIB,
    timeoutSeconds: NOTIFY_SECONDS,
    environment: {
      ...toEnvironments(settings).notify,
      BUCKET_NAME: store.bucket.bucketName,
      REFRESH_QUEUE_URL: queues.refreshes.queueUrl,
    } satisfies Record<keyof NotifyEnv, string>,
    statements: [
      ...store.toStatements(STORE_ACCESS.notify),
      toConsumeStatement(queues.notifications),
      toSendStatement(queues.refreshes),
    ],
    counted: [ERRORS],
  });
  feed(handler, queues.notifications, { batchSize: NOTIFICATIONS_AT_ONCE, maxConcurrency: NOTIFY_CONCURRENCY });
  alarmAtLoop(handler, NOTIFY_LOOPED);
}

function addRefresh(scope: Construct, { settings, bundles, store, queues, servers }: ServiceParts): void {
  const { handler } = new ServiceFunction(scope, "Refresh", {
    description: "skillbroker: fetches the lists of MCP servers and publishes the catalog",
    code: bundles.refresh.directory,
    memoryMiB: WHOLE_PROCESSOR_MIB,
    timeoutSeconds: REFRESH_SECONDS,
    environment: {
      ...toEnvironments(settings).refresh,
      BUCKET_NAME: store.bucket.bucketName,
    } satisfies Record<keyof RefreshEnv, string>,
    statements: [
      ...store.toStatements(STORE_ACCESS.refresh),
      toConsumeStatement(queues.refreshes),
      ...toSecretStatements(servers.secrets),
    ],
    counted: [ERRORS, REFUSED_REPOSITORIES, UNAVAILABLE_SERVERS],
  });
  feed(handler, queues.refreshes, { batchSize: 1, maxConcurrency: REFRESH_CONCURRENCY });
  alarmAtLoop(handler, REFRESH_LOOPED);
}

function addReconcile(scope: Construct, { settings, bundles, store, queues }: ServiceParts): ServiceFunction {
  return new ServiceFunction(scope, "Reconcile", {
    description: "skillbroker: asks for the lists of MCP servers that are due",
    code: bundles.reconcile.directory,
    memoryMiB: SMALL_MIB,
    timeoutSeconds: RECONCILE_SECONDS,
    // The next minute is the next attempt.
    retryAttempts: 0,
    environment: {
      ...toEnvironments(settings).reconcile,
      BUCKET_NAME: store.bucket.bucketName,
      NOTIFICATIONS_QUEUE_URL: queues.notifications.queueUrl,
    } satisfies Record<keyof ReconcileEnv, string>,
    statements: [...store.toStatements(STORE_ACCESS.reconcile), toSendStatement(queues.notifications)],
    counted: [ERRORS],
  });
}

/** Without servers nothing can be due, and a function that ran for nothing would be paid for. */
function runEveryMinute(scope: Construct, { handler }: ServiceFunction): void {
  const schedule = Schedule.rate(Duration.minutes(1));
  new Rule(scope, "EveryMinute", { schedule, targets: [new LambdaFunction(handler, { retryAttempts: 0 })] });
}
