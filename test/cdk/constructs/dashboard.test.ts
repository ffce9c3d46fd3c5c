import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { METRICS } from "../../../cdk/constructs/metrics.ts";
import { type Properties, resourcesOf, type StackChoices, stackMaker, toWords } from "../kit/stack-template.ts";

const makeStack = stackMaker();
const GRID_WIDTH = 24;

type Dashboard = { readonly template: Template; readonly widgets: readonly Properties[] };

function dashboardOf(choices: StackChoices): Dashboard {
  const template = Template.fromStack(makeStack(choices));
  const [{ DashboardBody }] = [...resourcesOf(template, "AWS::CloudWatch::Dashboard").values()];
  return { template, widgets: JSON.parse(toWords(DashboardBody)).widgets };
}

type Shown = {
  readonly namespace: string;
  readonly name: string;
  readonly dimensions: Readonly<Record<string, string>>;
};

/** CloudWatch's list `[namespace, name, dimension, value, …, {options}]`, in which `.` repeats the entry above. */
function metricsIn({ properties }: Properties): readonly Shown[] {
  const shown: Shown[] = [];
  let above: readonly string[] = [];
  for (const entry of properties.metrics ?? []) {
    const texts: readonly string[] = entry.filter((each: unknown) => typeof each === "string");
    const whole = texts.map((text, index) => (text === "." ? (above[index] ?? text) : text));
    const [namespace = "", name = "", ...pairs] = whole;
    const dimensions = pairs.flatMap((key, index) => (index % 2 === 0 ? [[key, pairs[index + 1] ?? ""] as const] : []));
    shown.push({ namespace, name, dimensions: Object.fromEntries(dimensions) });
    above = whole;
  }
  return shown;
}

const servers = { names: ["github", "notes"], secrets: [] };
const { template, widgets } = dashboardOf({ servers });
const shown = widgets.flatMap(metricsIn);
const titles = widgets.map(({ properties }) => properties.title);

/** What AWS itself says of functions, queues and HTTP APIs. */
const AWS_METRICS = new Map([
  ["AWS/Lambda", { dimension: "FunctionName", names: ["Errors", "Throttles", "Duration"] }],
  [
    "AWS/SQS",
    { dimension: "QueueName", names: ["ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"] },
  ],
  ["AWS/ApiGateway", { dimension: "ApiId", names: ["Count", "4xx", "5xx", "Latency", "IntegrationLatency"] }],
]);

describe("the dashboard", () => {
  test("shows requests, jobs, functions, queues and refreshes, and every alarm above them", () => {
    expect(titles).toEqual([
      "Alarms",
      "Requests",
      "Refusals by code",
      "Time of a request (ms)",
      "Jobs by outcome",
      "Time of a job (ms)",
      "Files made",
      "Crashes, and errors logged",
      "Throttles",
      "Time of a function, p95 (ms)",
      "Messages waiting",
      "Age of the oldest message (s)",
      "Dead letters",
      "Skills by outcome of refreshes",
      "Servers that did not answer, repositories refused",
      "Age of the lists of servers (s)",
    ]);
    const [first] = widgets;
    expect(first.type).toBe("alarm");
    const alarms = [...resourcesOf(template, "AWS::CloudWatch::Alarm").keys()].map((id) => `${id}.Arn`);
    expect(first.properties.alarms.toSorted()).toEqual(alarms.toSorted());
  });

  test("shows every metric that is counted from the logs", () => {
    const own = shown.filter(({ namespace }) => namespace === "skillbroker/SkillBroker").map(({ name }) => name);
    expect([...new Set(own)].sort()).toEqual([...METRICS.keys()].sort());
    const ages = shown.filter(({ name }) => name === "ListAge");
    expect(ages.map(({ dimensions }) => dimensions)).toEqual([{ Server: "github" }, { Server: "notes" }]);
    for (const { name, namespace, dimensions } of shown) {
      if (namespace.startsWith("skillbroker/") && name !== "ListAge") expect(dimensions).toEqual({});
    }
  });

  test("shows nothing else but what AWS says of a function, a queue or the API of the stack", () => {
    const ids = new Map([
      ["AWS/Lambda", [...resourcesOf(template, "AWS::Lambda::Function").keys()]],
      ["AWS/SQS", [...resourcesOf(template, "AWS::SQS::Queue").keys()].map((id) => `${id}.QueueName`)],
      ["AWS/ApiGateway", [...resourcesOf(template, "AWS::ApiGatewayV2::Api").keys()]],
    ]);
    const others = shown.filter(({ namespace }) => !namespace.startsWith("skillbroker/"));
    for (const { namespace, name, dimensions } of others) {
      const { dimension = "", names = [] } = AWS_METRICS.get(namespace) ?? {};
      expect(names).toContain(name);
      expect(Object.keys(dimensions)).toEqual([dimension]);
      expect(ids.get(namespace)).toContain(dimensions[dimension]);
    }
    for (const [namespace, all] of ids) {
      const seen = others
        .filter((each) => each.namespace === namespace)
        .flatMap(({ dimensions }) => Object.values(dimensions));
      expect([...new Set(seen)].sort()).toEqual(all.toSorted());
    }
  });

  test("shows the middle and the slow end of jobs and requests, and nowhere an average", () => {
    const stats = new Map(
      widgets
        .slice(1)
        .map(({ properties }) => [
          properties.title,
          properties.metrics.map((entry: readonly Properties[]) => entry.at(-1)?.stat ?? "Average"),
        ]),
    );
    expect(stats.get("Time of a job (ms)")).toEqual(["p50", "p95"]);
    expect(stats.get("Time of a request (ms)")).toEqual(["p50", "p95", "p95"]);
    expect([...stats.values()].flat()).not.toContain("Average");
  });

  test("has an axis that begins at zero for everything, so that nothing looks larger than it is", () => {
    for (const { properties } of widgets.slice(1)) {
      expect(properties.yAxis.left.min).toBe(0);
      expect(properties.period).toBe(300);
    }
  });

  test("leaves no widget over another one or outside of the grid", () => {
    const taken = new Set<string>();
    for (const { x, y, width, height } of widgets) {
      expect(x + width).toBeLessThanOrEqual(GRID_WIDTH);
      for (let column = x; column < x + width; column += 1) {
        for (let row = y; row < y + height; row += 1) {
          expect(taken).not.toContain(`${column} ${row}`);
          taken.add(`${column} ${row}`);
        }
      }
    }
  });

  test("has no empty graph where no server is declared", () => {
    const without = dashboardOf({}).widgets;
    expect(without.map(({ properties }) => properties.title)).not.toContain("Age of the lists of servers (s)");
    for (const { properties } of without.slice(1)) expect(properties.metrics.length).toBeGreaterThan(0);
  });

  test.each([100, 101])("shows %i alarms, no more in a widget than CloudWatch takes", (wanted) => {
    const few = widgets[0].properties.alarms.length - servers.names.length;
    const names = Array.from({ length: wanted - few }, (_, index) => `s${index}`);
    const many = dashboardOf({ servers: { names, secrets: [] } }).widgets.filter(({ type }) => type === "alarm");
    const counts = many.map(({ properties }) => properties.alarms.length);
    expect(counts).toEqual(wanted === 100 ? [100] : [100, 1]);
  });
});
