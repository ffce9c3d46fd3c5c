import {
  type Alarm,
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type GraphWidgetProps,
  type IMetric,
  type IWidget,
} from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import { FUNCTION_NAMES } from "../entry-points.ts";
import { API_FAILED, REFUSAL_METRICS, toErrorsName } from "./metrics.ts";
import { PERIOD, QUEUE_NAMES, type Shown, toListAge, toMetric, type Watched } from "./watched.ts";

export type ServiceDashboardProps = { readonly watched: Watched; readonly alarms: readonly Alarm[] };

/** One page: what is wrong now, then the way of a job from the request to the file, then that of a refresh. */
export class ServiceDashboard extends Construct {
  readonly dashboard: Dashboard;

  constructor(scope: Construct, id: string, { watched, alarms }: ServiceDashboardProps) {
    super(scope, id);
    const status = showAlarms(alarms).map((widget) => [widget]);
    const rows = [showRequests, showJobs, showFunctions, showQueues, showRefreshes].map((show) => show(watched));
    this.dashboard = new Dashboard(this, "Dashboard", {
      widgets: [...status, ...rows.map((row) => [...row])],
    });
  }
}

const FULL_WIDTH = 24;
const THIRD: Pick<GraphWidgetProps, "width" | "height" | "period"> = {
  width: FULL_WIDTH / 3,
  height: 6,
  period: PERIOD,
};
const FROM_ZERO = { min: 0 } as const;

type Graph = { readonly left: readonly IMetric[]; readonly right?: readonly IMetric[]; readonly stacked?: boolean };

function draw(title: string, { left, right, stacked = false }: Graph): GraphWidget {
  return new GraphWidget({
    ...THIRD,
    title,
    left: [...left],
    leftYAxis: FROM_ZERO,
    ...(right === undefined ? {} : { right: [...right], rightYAxis: FROM_ZERO }),
    stacked,
  });
}

/** CloudWatch takes so many in one widget; each server has an alarm of its own. */
const MAX_ALARMS_A_WIDGET = 100;

function showAlarms(alarms: readonly Alarm[]): readonly IWidget[] {
  const count = Math.ceil(alarms.length / MAX_ALARMS_A_WIDGET);
  return Array.from({ length: count }, (_, index) => {
    const some = alarms.slice(index * MAX_ALARMS_A_WIDGET, (index + 1) * MAX_ALARMS_A_WIDGET);
    return new AlarmStatusWidget({ title: "Alarms", alarms: some, width: FULL_WIDTH, height: 5 });
  });
}

function showRequests(watched: Watched): readonly IWidget[] {
  const { api } = watched;
  const p95 = { statistic: "p95", period: PERIOD };
  return [
    draw("Requests", {
      left: [
        toMetric(watched, "Requests", { statistic: "Sum", label: "answered" }),
        api.metricCount({ period: PERIOD, label: "at the API" }),
        api.metricClientError({ period: PERIOD, label: "4xx" }),
        api.metricServerError({ period: PERIOD, label: "5xx" }),
        toMetric(watched, API_FAILED.name, { statistic: "Sum", label: "5xx without an answer" }),
      ],
    }),
    draw("Refusals by code", {
      left: REFUSAL_METRICS.map(({ name, code }) => toMetric(watched, name, { statistic: "Sum", label: code })),
      stacked: true,
    }),
    draw("Time of a request (ms)", {
      left: [
        api.metricLatency({ statistic: "p50", period: PERIOD, label: "p50" }),
        api.metricLatency({ ...p95, label: "p95" }),
        api.metricIntegrationLatency({ ...p95, label: "p95 of the function" }),
      ],
    }),
  ];
}

function showJobs(watched: Watched): readonly IWidget[] {
  const sum = (label: string, name: string) => toMetric(watched, name, { statistic: "Sum", label });
  const duration = (statistic: Shown["statistic"]) => toMetric(watched, "JobDuration", { statistic, label: statistic });
  return [
    draw("Jobs by outcome", {
      left: [
        sum("succeeded", "JobsSucceeded"),
        sum("partial", "JobsPartial"),
        sum("failed", "JobsFailed"),
        sum("given up", "JobsGivenUp"),
        sum("queued", "JobsQueued"),
      ],
    }),
    draw("Time of a job (ms)", { left: [duration("p50"), duration("p95")] }),
    draw("Files made", { left: [sum("files", "Artifacts")], right: [sum("bytes", "ArtifactBytes")] }),
  ];
}

function showFunctions(watched: Watched): readonly IWidget[] {
  const each = FUNCTION_NAMES.map((name) => ({ name, handler: watched.functions[name].handler }));
  return [
    draw("Crashes, and errors logged", {
      left: [
        ...each.map(({ name, handler }) => handler.metricErrors({ period: PERIOD, label: `${name} crashed` })),
        ...FUNCTION_NAMES.map((name) =>
          toMetric(watched, toErrorsName(name), { statistic: "Sum", label: `${name} logged` }),
        ),
      ],
    }),
    draw("Throttles", {
      left: each.map(({ name, handler }) => handler.metricThrottles({ period: PERIOD, label: name })),
    }),
    draw("Time of a function, p95 (ms)", {
      left: each.map(({ name, handler }) => handler.metricDuration({ statistic: "p95", period: PERIOD, label: name })),
    }),
  ];
}

function showQueues({ queues }: Watched): readonly IWidget[] {
  const most = { statistic: "Maximum", period: PERIOD };
  return [
    draw("Messages waiting", {
      left: QUEUE_NAMES.map((name) => queues[name].metricApproximateNumberOfMessagesVisible({ ...most, label: name })),
    }),
    draw("Age of the oldest message (s)", {
      left: QUEUE_NAMES.map((name) => queues[name].metricApproximateAgeOfOldestMessage({ ...most, label: name })),
    }),
    draw("Dead letters", {
      left: QUEUE_NAMES.map((name) =>
        queues[name].deadLetters.metricApproximateNumberOfMessagesVisible({ ...most, label: name }),
      ),
    }),
  ];
}

function showRefreshes(watched: Watched): readonly IWidget[] {
  const sum = (label: string, name: string) => toMetric(watched, name, { statistic: "Sum", label });
  const outcomes = draw("Skills by outcome of refreshes", {
    left: [sum("refreshed", "SkillsRefreshed"), sum("failed", "SkillsFailed"), sum("skipped", "SkillsSkipped")],
  });
  const troubles = draw("Servers that did not answer, repositories refused", {
    left: [sum("server unavailable", "ServerUnavailable"), sum("repository refused", "RepositoryRefused")],
  });
  if (watched.servers.length === 0) return [outcomes, troubles];
  const ages = watched.servers.map((server) => toListAge(watched, server).with({ label: server }));
  return [outcomes, troubles, draw("Age of the lists of servers (s)", { left: ages })];
}
