import type { Queue } from "aws-cdk-lib/aws-sqs";
import type { Construct } from "constructs";
import { toEnvironments } from "../deploy-settings.ts";
import { HTTP_SECONDS } from "../timeouts.ts";
import { ServiceFunction, type ServiceParts, WHOLE_PROCESSOR_MIB } from "./service-function.ts";
import { toSendStatement } from "./service-queue.ts";

export type HttpParts = ServiceParts & { readonly jobs: Queue };

/**
 * The function behind all HTTP routes. It calls servers for jobs, queues jobs that are not waited for, asks for
 * refreshes, and refreshes at once when told to.
 */
export function addHttpFunction(scope: Construct, id: string, parts: HttpParts): ServiceFunction {
  const { settings, queues, jobs } = parts;
  return new ServiceFunction(scope, id, {
    name: "http",
    parts,
    description: "skillbroker: every HTTP route",
    memoryMiB: WHOLE_PROCESSOR_MIB,
    timeoutSeconds: HTTP_SECONDS,
    // Nothing that it turns away is lost: the caller is told, and not a queue that would count it as an attempt.
    ...(settings.httpConcurrency === undefined ? {} : { reservedConcurrentExecutions: settings.httpConcurrency }),
    environment: {
      ...toEnvironments(settings).http,
      JOBS_QUEUE_URL: jobs.queueUrl,
      NOTIFICATIONS_QUEUE_URL: queues.notifications.queueUrl,
    },
    statements: [toSendStatement(jobs), toSendStatement(queues.notifications)],
  });
}
