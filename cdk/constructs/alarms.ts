import { Duration } from "aws-cdk-lib";
import {
  Alarm,
  ComparisonOperator,
  type IAlarmAction,
  type IMetric,
  MathExpression,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { toWorkerSeconds } from "../../functions/contract/job-times.ts";
import { FUNCTION_NAMES, type FunctionName } from "../entry-points.ts";
import { API_FAILED, toErrorsName, toPascalCase } from "./metrics.ts";
import { PERIOD, toListAge, toMetric, type Watched } from "./watched.ts";

/**
 * What nobody would notice otherwise and somebody must act on. Each alarm has a page of its own name in
 * docs/operator.md, and says the short of it itself, because it is read where no documentation is at hand.
 */

export type ServiceAlarmsProps = {
  readonly watched: Watched;
  /** What every alarm does when it goes off; none: it only shows. */
  readonly actions: readonly IAlarmAction[];
};

export class ServiceAlarms extends Construct {
  readonly alarms: readonly Alarm[];

  constructor(scope: Construct, id: string, { watched, actions }: ServiceAlarmsProps) {
    super(scope, id);
    this.alarms = toWarnings(watched).map((warning) => addAlarm(this, warning));
    for (const alarm of this.alarms) alarm.addAlarmAction(...actions);
  }
}

type Warning = {
  /** As the page in docs/operator.md. */
  readonly name: string;
  /** Which of several of that name. */
  readonly of?: string;
  readonly metric: IMetric;
  /** Goes off at this value and above, or `below` it. */
  readonly at?: number;
  readonly below?: number;
  /** How many periods it must last. */
  readonly periods?: number;
  readonly missing?: TreatMissingData;
  /** What it means and where to look, in a few sentences. */
  readonly means: string;
};

function addAlarm(scope: Construct, { name, of, metric, at, below, periods, missing, means }: Warning): Alarm {
  return new Alarm(scope, of === undefined ? name : `${name}-${of}`, {
    metric,
    alarmDescription: `${name}${of === undefined ? "" : ` (${of})`}: ${means} See docs/operator.md.`,
    threshold: below ?? at ?? 1,
    comparisonOperator:
      below === undefined
        ? ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
        : ComparisonOperator.LESS_THAN_THRESHOLD,
    evaluationPeriods: periods ?? 1,
    // AWS sends nothing for what does not happen and for a queue that nobody uses.
    treatMissingData: missing ?? TreatMissingData.NOT_BREACHING,
  });
}

function toWarnings(watched: Watched): readonly Warning[] {
  return [
    ...FUNCTION_NAMES.flatMap((name) => [warnOfErrors(watched, name), warnOfCrashes(watched, name)]),
    ...FED.map((name) => warnOfLoop(watched, name)),
    warnOfThrottles(watched),
    warnOfFailedApi(watched),
    ...warnOfDeadLetters(watched),
    ...warnOfJobs(watched),
    warnOfRepository(watched),
    ...(watched.servers.length === 0 ? [] : [warnOfSilence(watched)]),
    ...watched.servers.map((server) => warnOfOldList(watched, server)),
  ];
}

const ERRORS: Readonly<Record<FunctionName, string>> = {
  http: "A request was answered with a defect of the service or of its deployment",
  worker: "Something went wrong in an asynchronous job that is no fault of its caller",
  "dead-jobs": "A job that could not be finished could not be marked as failed either, and its caller still waits",
  notify: "Notifications of MCP servers could not be turned into refreshes",
  refresh: "Fetching the lists of MCP servers or publishing the catalog went wrong in a way that nobody foresaw",
  reconcile: "The lists that are due could not be found out or asked for",
};

function warnOfErrors(watched: Watched, name: FunctionName): Warning {
  return {
    name: toErrorsName(name),
    metric: toMetric(watched, toErrorsName(name), { statistic: "Sum" }),
    means: `${ERRORS[name]}. The log of the ${name} function has it as a line whose level is "error".`,
  };
}

const CRASHES: Readonly<Record<FunctionName, string>> = {
  http: "The http function ended without an answer: out of time, out of memory, or it cannot start; the caller got 500 or 503",
  worker:
    "The worker function ended in the midst of a job: out of time, out of memory, or it cannot start; the job is tried again",
  "dead-jobs": "The dead-jobs function ended before it had marked the jobs as failed; it is tried again",
  notify: "The notify function ended in the midst of a batch; its notifications come back",
  refresh: "The refresh function ended in the midst of a refresh; the message comes back",
  reconcile: "The reconcile function ended early; the next minute is the next attempt",
};

/** What the function's own log cannot tell: it was ended from outside, or threw while it started. */
function warnOfCrashes({ functions }: Watched, name: FunctionName): Warning {
  return {
    name: `${toPascalCase(name)}Crashed`,
    metric: functions[name].handler.metricErrors({ period: PERIOD }),
    means: `${CRASHES[name]}. Look for "Task timed out", "Runtime exited" or the error of the start in its log.`,
  };
}

/** The functions that are fed from a queue: AWS ends a chain of invocations that keeps coming back to one of them. */
const FED = ["worker", "dead-jobs", "notify", "refresh"] as const satisfies readonly FunctionName[];

const LOOPS: Readonly<Record<(typeof FED)[number], string>> = {
  worker:
    "what a job called started the same chain of jobs again. Look for an MCP server of this account that posts jobs when it is called",
  "dead-jobs":
    "marking a job as failed started the same chain again. Look for what listens to the bucket and posts jobs",
  notify:
    "what it sent came back to it as a notification. Look for what reads the queue of refreshes, or listens to a server, and sends notifications in answer",
  refresh:
    "its fetching made it run again. Look for an MCP server of this account that notifies whenever its list is fetched, or for what listens to the bucket and sends notifications",
};

function warnOfLoop({ functions }: Watched, name: (typeof FED)[number]): Warning {
  return {
    name: `${toPascalCase(name)}LoopEnded`,
    metric: functions[name].handler.metric("RecursiveInvocationsDropped", { statistic: "Sum", period: PERIOD }),
    means:
      `AWS ended a loop through the ${name} function after some sixteen rounds: ${LOOPS[name]}; nothing in this stack ` +
      "does that. Detach it, then see to the dead letters, where the dropped messages end.",
  };
}

function warnOfThrottles({ functions }: Watched): Warning {
  return {
    name: "HttpThrottled",
    metric: functions.http.handler.metricThrottles({ period: PERIOD }),
    means:
      "Requests were turned away with 503 because as many were being answered as may be: httpConcurrency, or what the " +
      "account has left. Raise the one or the other, or have callers use Prefer: respond-async.",
  };
}

function warnOfFailedApi(watched: Watched): Warning {
  return {
    name: "ApiFailed",
    metric: toMetric(watched, API_FAILED.name, { statistic: "Sum" }),
    means:
      "Callers got 5xx from API Gateway that the http function did not answer with. When HttpCrashed or HttpThrottled is " +
      "on as well, that is the reason; otherwise API Gateway cannot call the function or read its answer. The access log " +
      "of the API says which requests, and integration_error why.",
  };
}

/** Those of jobs are taken by a function, so that it is the sign when they stay; the others wait for a person. */
function warnOfDeadLetters({ queues }: Watched): readonly Warning[] {
  const held = (name: "notifications" | "refreshes") =>
    queues[name].deadLetters.metricApproximateNumberOfMessagesVisible({ statistic: "Maximum", period: PERIOD });
  return [
    {
      name: "NotificationsDeadLetters",
      metric: held("notifications"),
      means:
        "A notification failed five times and waits among the dead letters for 14 days; its server is asked again by the " +
        "schedule alone. The log of the notify function says why. Put that right and redrive the queue, or purge it.",
    },
    {
      name: "RefreshesDeadLetters",
      metric: held("refreshes"),
      means:
        "A refresh failed five times and waits among the dead letters for 14 days; the catalog does not show what it was " +
        "asked for. The log of the refresh function says why; a server that does not answer is no reason. Put that right " +
        "and redrive the queue, or purge it when the server was refreshed since.",
    },
    {
      name: "JobsDeadLetters",
      metric: toHeld(queues.jobs.deadLetters),
      periods: DEAD_JOB_MINUTES,
      means:
        "For a quarter of an hour there was always a job among the dead letters of jobs: the dead-jobs function, which " +
        "marks them as failed, does not take them or fails on them. The log of that function says why; their callers " +
        "still see the jobs as running.",
    },
  ];
}

/** Long enough for several attempts of the function that takes them. */
const DEAD_JOB_MINUTES = 15;

/**
 * Messages of a queue, those in hand included, once a minute. Not the age of the oldest: SQS leaves a message out of it
 * that was received three times, which a dead letter that its function fails on is after a few minutes. A count that
 * SQS does not report is none, and would otherwise leave out the sum.
 */
function toHeld(queue: Queue): IMetric {
  const once = { statistic: "Maximum", period: Duration.minutes(1) };
  return new MathExpression({
    expression: "FILL(visible, 0) + FILL(hidden, 0)",
    usingMetrics: {
      visible: queue.metricApproximateNumberOfMessagesVisible(once),
      hidden: queue.metricApproximateNumberOfMessagesNotVisible(once),
    },
    period: Duration.minutes(1),
    label: "messages, those in hand included",
  });
}

/** A job that is being worked on ages in the queue as well; this is what it may wait beside that. */
const JOB_WAITING_SECONDS = 600;

function warnOfJobs(watched: Watched): readonly Warning[] {
  const { queues, settings } = watched;
  const waiting = new MathExpression({
    // Without a job that can be taken, the oldest is one in hand, or one that is hidden until it is tried again.
    expression: "IF(waiting > 0, age, 0)",
    usingMetrics: {
      waiting: queues.jobs.metricApproximateNumberOfMessagesVisible({ statistic: "Minimum", period: PERIOD }),
      age: queues.jobs.metricApproximateAgeOfOldestMessage({ period: PERIOD }),
    },
    period: PERIOD,
    label: "age of the oldest job while jobs wait",
  });
  return [
    {
      name: "JobsGivenUp",
      metric: toMetric(watched, "JobsGivenUp", { statistic: "Sum" }),
      means:
        "An asynchronous job was handed to a worker five times, never ended, and was marked as failed with " +
        "JOB_INTERRUPTED. The log of the worker function says by the job's id what it did last.",
    },
    {
      name: "JobsWaiting",
      metric: waiting,
      at: toWorkerSeconds(settings.asyncJobSeconds) + JOB_WAITING_SECONDS,
      periods: 2,
      means:
        "For ten minutes some asynchronous job has been waiting all the time, and the oldest in the queue is ten minutes " +
        "older than a job may take: jobs come faster than they are worked on, or one is tried again after its worker " +
        "crashed. Raise asyncJobsAtOnce or the concurrency of the account, or find out why the worker fails or is slow.",
    },
  ];
}

function warnOfRepository(watched: Watched): Warning {
  return {
    name: "RepositoryRefused",
    metric: toMetric(watched, "RepositoryRefused", { statistic: "Sum" }),
    means:
      "A function that was just started refused a repository of skills and serves without it. The line with the code " +
      "REPOSITORY_REFUSED says why; nothing but a changed deployment brings it about. Deploy what was approved.",
  };
}

function warnOfSilence({ functions }: Watched): Warning {
  return {
    name: "ReconcileSilent",
    metric: functions.reconcile.handler.metricInvocations({ period: PERIOD }),
    below: 1,
    periods: 3,
    missing: TreatMissingData.BREACHING,
    means:
      "Nobody has looked for a quarter of an hour which lists of MCP servers are due: the rule that rings every minute is " +
      "off or may not call the function, or the account has no concurrency left. Once, in the minutes after the first " +
      "deployment, it means only that the clock has not rung yet.",
  };
}

function warnOfOldList(watched: Watched, server: string): Warning {
  const { maxListAgeSeconds } = watched.settings;
  return {
    name: "ListTooOld",
    of: server,
    metric: toListAge(watched, server),
    at: maxListAgeSeconds,
    // A server that was declared just now counts as too old until its list is there.
    periods: 3,
    // While nobody looks, nothing is known; that has an alarm of its own.
    missing: TreatMissingData.IGNORE,
    means:
      `The list of this MCP server could not be fetched for ${maxListAgeSeconds} s, or never, and is not gone by: its tools ` +
      "cannot be called. /v1/health says what the last attempt met.",
  };
}
