import { Duration } from "aws-cdk-lib";
import type { HttpApi } from "aws-cdk-lib/aws-apigatewayv2";
import { Metric } from "aws-cdk-lib/aws-cloudwatch";
import type { OperatorSettings } from "../../functions/contract/settings.ts";
import type { FunctionName } from "../entry-points.ts";
import type { ServiceFunction } from "./service-function.ts";
import type { ServiceQueue } from "./service-queue.ts";

/** What alarms and dashboard look at. */

export const QUEUE_NAMES = ["jobs", "notifications", "refreshes"] as const;
export type QueueName = (typeof QUEUE_NAMES)[number];

export type Watched = {
  /** Of the metrics that are counted from the logs. */
  readonly namespace: string;
  readonly api: HttpApi;
  readonly functions: Readonly<Record<FunctionName, ServiceFunction>>;
  readonly queues: Readonly<Record<QueueName, ServiceQueue>>;
  /** Names of the declared MCP servers. */
  readonly servers: readonly string[];
  readonly settings: Pick<OperatorSettings, "asyncJobSeconds" | "maxListAgeSeconds">;
};

export const PERIOD = Duration.minutes(5);

export type Shown = {
  readonly statistic: string;
  readonly label?: string;
  readonly dimensions?: Readonly<Record<string, string>>;
};

/** A metric that is counted from the logs. */
export function toMetric({ namespace }: Pick<Watched, "namespace">, metricName: string, shown: Shown): Metric {
  const { dimensions, ...rest } = shown;
  return new Metric({
    namespace,
    metricName,
    period: PERIOD,
    ...rest,
    ...(dimensions === undefined ? {} : { dimensionsMap: { ...dimensions } }),
  });
}

/** How old the list of a server is. */
export function toListAge(watched: Pick<Watched, "namespace">, server: string): Metric {
  return toMetric(watched, "ListAge", { statistic: "Maximum", dimensions: { Server: server } });
}
