import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { METRICS } from "../../../cdk/constructs/metrics.ts";
import { ROOT } from "../kit/run-app.ts";
import { type Properties, resourcesOf, type StackChoices, stackMaker, toWords } from "../kit/stack-template.ts";

const makeStack = stackMaker();
const alarmsIn = (choices?: StackChoices) =>
  resourcesOf(Template.fromStack(makeStack(choices)), "AWS::CloudWatch::Alarm");
const alarms = alarmsIn({ servers: { names: ["github", "notes"], secrets: [] } });
const alarmOf = (name: string) => alarms.get(`Alarms${name}`);
/** `ListTooOld (github): …` and `HttpErrors: …` begin so. */
const nameOf = ({ AlarmDescription }: Properties) => /^(\w+)(?: \([^)]+\))?: /.exec(AlarmDescription)?.[1] ?? "";

const PERIOD = 300;
const FUNCTIONS = {
  Http: "HttpFunction",
  Worker: "WorkerPathWorkerFunction",
  DeadJobs: "WorkerPathDeadJobsFunction",
  Notify: "RefreshPathNotifyFunction",
  Refresh: "RefreshPathRefreshFunction",
  Reconcile: "RefreshPathReconcileFunction",
} as const;

/** What an alarm watches and when it goes off, in one line. */
function toSentence(alarm: Properties): string {
  const { Namespace, MetricName, Dimensions = [], Statistic, Period, Threshold, EvaluationPeriods } = alarm;
  const of = Dimensions.map((each: Properties) => toWords(each.Value)).join();
  const sign = new Map([
    ["GreaterThanOrEqualToThreshold", ">="],
    ["LessThanThreshold", "<"],
  ]).get(alarm.ComparisonOperator);
  return `${Namespace} ${MetricName} ${of || "-"} ${Statistic} ${sign} ${Threshold} in ${EvaluationPeriods} x ${Period}, silence is ${alarm.TreatMissingData}`;
}

const AT_OR_ABOVE = {
  ComparisonOperator: "GreaterThanOrEqualToThreshold",
  TreatMissingData: "notBreaching",
} as const;

/** What an alarm computes, and of what. */
function toMaths({ Metrics }: Properties): Readonly<Record<string, string>> {
  const shown = Metrics.filter(({ ReturnData }: Properties) => ReturnData !== false);
  const stats = Metrics.filter(({ MetricStat }: Properties) => MetricStat !== undefined);
  const told = stats.map(({ Id, MetricStat: { Metric, Stat, Period } }: Properties) => [
    Id,
    `${Metric.MetricName} ${toWords(Metric.Dimensions[0].Value)} ${Stat} ${Period}`,
  ]);
  return { ...Object.fromEntries(told), expression: shown.map(({ Expression }: Properties) => Expression).join() };
}

const once = (what: string, statistic = "Sum") => `${what} ${statistic} >= 1 in 1 x 300, silence is notBreaching`;
type Expected = readonly [string, string];
const perFunction = Object.entries(FUNCTIONS).flatMap(([name, id]): readonly Expected[] => [
  [`${name}Errors`, once(`skillbroker/SkillBroker ${name}Errors -`)],
  [`${name}Crashed`, once(`AWS/Lambda Errors ${id}`)],
]);
const loops = (["Worker", "DeadJobs", "Notify", "Refresh"] as const).map(
  (name): Expected => [`${name}LoopEnded`, once(`AWS/Lambda RecursiveInvocationsDropped ${FUNCTIONS[name]}`)],
);
const visible = (queue: string) => once(`AWS/SQS ApproximateNumberOfMessagesVisible ${queue}.QueueName`, "Maximum");
const EXPECTED: ReadonlyMap<string, string> = new Map<string, string>([
  ...perFunction,
  ...loops,
  ["HttpThrottled", once("AWS/Lambda Throttles HttpFunction")],
  ["ApiFailed", once("skillbroker/SkillBroker ApiFailed -")],
  ["NotificationsDeadLetters", visible("QueuesNotificationsDeadLetters")],
  ["RefreshesDeadLetters", visible("QueuesRefreshesDeadLetters")],
  ["JobsGivenUp", once("skillbroker/SkillBroker JobsGivenUp -")],
  ["RepositoryRefused", once("skillbroker/SkillBroker RepositoryRefused -")],
  ["ReconcileSilent", "AWS/Lambda Invocations RefreshPathReconcileFunction Sum < 1 in 3 x 300, silence is breaching"],
  ...["github", "notes"].map(
    (server): Expected => [
      `ListTooOld${server}`,
      `skillbroker/SkillBroker ListAge ${server} Maximum >= 86400 in 3 x 300, silence is ignore`,
    ],
  ),
]);

describe("the alarms", () => {
  test("are these, and two over several metrics", () => {
    const names = [...alarms.keys()].map((id) => id.replace("Alarms", ""));
    expect(names.sort()).toEqual([...EXPECTED.keys(), "JobsWaiting", "JobsDeadLetters"].sort());
  });

  test.each([...EXPECTED])("%s goes off when it should", (name, sentence) => {
    expect(toSentence(alarmOf(name))).toBe(sentence);
  });

  test("JobsWaiting goes off when jobs wait all the time and the oldest waits longer than a job may take", () => {
    const alarm = alarmOf("JobsWaiting");
    expect(toMaths(alarm)).toEqual({
      expression: "IF(waiting > 0, age, 0)",
      waiting: `ApproximateNumberOfMessagesVisible Jobs.QueueName Minimum ${PERIOD}`,
      age: `ApproximateAgeOfOldestMessage Jobs.QueueName Maximum ${PERIOD}`,
    });
    expect(alarm).toMatchObject({ ...AT_OR_ABOVE, Threshold: 300 + 60 + 600, EvaluationPeriods: 2 });
  });

  test("JobsDeadLetters goes off when there was one at every minute of a quarter of an hour, in hand or not", () => {
    const alarm = alarmOf("JobsDeadLetters");
    expect(toMaths(alarm)).toEqual({
      expression: "FILL(visible, 0) + FILL(hidden, 0)",
      visible: "ApproximateNumberOfMessagesVisible JobsDeadLetters.QueueName Maximum 60",
      hidden: "ApproximateNumberOfMessagesNotVisible JobsDeadLetters.QueueName Maximum 60",
    });
    expect(alarm).toMatchObject({ ...AT_OR_ABOVE, Threshold: 1, EvaluationPeriods: 15 });
    expect(alarm.DatapointsToAlarm).toBeUndefined();
  });

  test("of dead letters go by no age, which SQS does not tell of what was received three times", () => {
    for (const [name, alarm] of alarms) {
      if (name.endsWith("DeadLetters")) expect(JSON.stringify(alarm)).not.toContain("ApproximateAgeOfOldestMessage");
    }
  });

  test("go by what the operator chose: how long jobs take, and how old a list may be", () => {
    const chosen = alarmsIn({
      settings: { asyncJobSeconds: 840, maxListAgeSeconds: 3_600 },
      servers: { names: ["github"], secrets: [] },
    });
    expect(chosen.get("AlarmsJobsWaiting").Threshold).toBe(840 + 60 + 600);
    expect(chosen.get("AlarmsListTooOldgithub").Threshold).toBe(3_600);
  });

  test("watch no server where there is none", () => {
    const names = [...alarmsIn().keys()];
    expect(names.filter((name) => /ListTooOld|ReconcileSilent/.test(name))).toEqual([]);
    expect(names).toContain("AlarmsReconcileErrors");
  });

  test("watch metrics that are made, each in the namespace of the stack", () => {
    for (const { Namespace, MetricName } of alarms.values()) {
      if (Namespace?.startsWith("skillbroker/")) expect(METRICS.has(MetricName)).toBe(true);
    }
  });
});

describe("whom an alarm tells", () => {
  const TOPIC = "arn:aws:sns:eu-west-1:123456789012:on-call";

  test("nobody, when nothing is chosen", () => {
    for (const { AlarmActions, OKActions, InsufficientDataActions, ActionsEnabled } of alarms.values()) {
      expect({ AlarmActions, OKActions, InsufficientDataActions }).toEqual({});
      expect(ActionsEnabled).not.toBe(false);
    }
  });

  test("the topic that was chosen, every one", () => {
    const telling = alarmsIn({ settings: { alarmTopicArn: TOPIC } });
    for (const { AlarmActions } of telling.values()) expect(AlarmActions).toEqual([TOPIC]);
  });
});

describe("what an alarm says", () => {
  test("begins with its name, is told from every other, and is not longer than CloudWatch takes", () => {
    const descriptions = [...alarms.values()].map(({ AlarmDescription }): string => AlarmDescription);
    expect(new Set(descriptions).size).toBe(alarms.size);
    for (const [id, alarm] of alarms) {
      expect(id).toMatch(new RegExp(`^Alarms${nameOf(alarm)}`));
      expect(alarm.AlarmDescription.length).toBeLessThanOrEqual(1024);
      expect(alarm.AlarmDescription).toMatch(/See docs\/operator\.md\.$/);
    }
  });

  test("has a page under the same name for operators, and no page is of an alarm that is not there", () => {
    const page = readFileSync(join(ROOT, "docs/operator.md"), "utf8");
    const sections = page.split(/^#### /m).slice(1);
    const headings = sections.map((section) => section.split("\n")[0]);
    expect(headings.toSorted()).toEqual([...new Set([...alarms.values()].map(nameOf))].sort());
    for (const section of sections) {
      expect(section).toMatch(/^- \*\*Means\*\* .{20}/m);
      expect(section).toMatch(/^- \*\*Look (at|for)\*\* .{10}/m);
      expect(section).toMatch(/^- \*\*Do\*\* .{10}/m);
    }
  });
});
