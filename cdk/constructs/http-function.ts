import type { Construct } from "constructs";
import type { HttpEnv } from "../../functions/contract/env.ts";
import { toEnvironments } from "../deploy-settings.ts";
import { HTTP_SECONDS } from "../timeouts.ts";
import { STORE_ACCESS } from "./artifact-bucket.ts";
import { toSendStatement } from "./refresh-queues.ts";
import { toSecretStatements } from "./secret-access.ts";
import {
  ERRORS,
  REFUSED_REPOSITORIES,
  ServiceFunction,
  type ServiceParts,
  WHOLE_PROCESSOR_MIB,
} from "./service-function.ts";

/** The function behind all HTTP routes. It calls servers for jobs, asks for refreshes, and refreshes at once when told to. */
export function addHttpFunction(scope: Construct, id: string, parts: ServiceParts): ServiceFunction {
  const { settings, bundles, store, queues, servers } = parts;
  return new ServiceFunction(scope, id, {
    description: "skillbroker: every HTTP route",
    code: bundles.http.directory,
    memoryMiB: WHOLE_PROCESSOR_MIB,
    timeoutSeconds: HTTP_SECONDS,
    environment: {
      ...toEnvironments(settings).http,
      BUCKET_NAME: store.bucket.bucketName,
      NOTIFICATIONS_QUEUE_URL: queues.notifications.queueUrl,
    } satisfies Record<keyof HttpEnv, string>,
    statements: [
      ...store.toStatements(STORE_ACCESS.http),
      toSendStatement(queues.notifications),
      ...toSecretStatements(servers.secrets),
    ],
    counted: [ERRORS, REFUSED_REPOSITORIES],
  });
}
