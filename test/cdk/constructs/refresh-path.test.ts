import { Template } from "aws-cdk-lib/assertions";
import { expect, test } from "vitest";
import { LISTING_DEADLINE_MS } from "../../../functions/contract/refresh-limits.ts";
import { type Properties, resourcesOf, stackMaker, toWords } from "../kit/stack-template.ts";

const makeStack = stackMaker();
const without = Template.fromStack(makeStack());
const template = Template.fromStack(makeStack({ servers: { names: ["github"], secrets: [] } }));
const functionOf = (name: string) => resourcesOf(template, "AWS::Lambda::Function").get(name);
const onlyPropertiesOf = (type: string) => {
  const all = [...resourcesOf(template, type).values()];
  expect(all).toHaveLength(1);
  return all[0];
};

test("the clock rings every minute for the reconciling function, which alone it may call", () => {
  const rule = onlyPropertiesOf("AWS::Events::Rule");
  expect(rule).toMatchObject({ ScheduleExpression: "rate(1 minute)", State: "ENABLED" });
  expect(rule.Targets.map(({ Arn }: Properties) => toWords(Arn))).toEqual(["RefreshPathReconcileFunction.Arn"]);
  const permissions = [...resourcesOf(template, "AWS::Lambda::Permission").values()];
  const ofClock = permissions.filter(({ Principal }) => Principal === "events.amazonaws.com");
  expect(ofClock.map(({ FunctionName, SourceArn }) => [toWords(FunctionName), toWords(SourceArn)])).toEqual([
    ["RefreshPathReconcileFunction.Arn", "RefreshPathEveryMinute.Arn"],
  ]);
});

test("the clock does not try again what the next minute does anyway, and a run ends before the next begins", () => {
  const retrying = onlyPropertiesOf("AWS::Lambda::EventInvokeConfig");
  expect(toWords(retrying.FunctionName)).toBe("RefreshPathReconcileFunction");
  expect(retrying.MaximumRetryAttempts).toBe(0);
  expect(functionOf("RefreshPathReconcileFunction").Timeout).toBeLessThan(60);
});

test("there is no clock without servers", () => {
  expect(without.findResources("AWS::Events::Rule")).toEqual({});
});

test("a function that fetched lists has time left to publish what came of it", () => {
  expect(functionOf("RefreshPathRefreshFunction").Timeout * 1000 - LISTING_DEADLINE_MS).toBeGreaterThanOrEqual(15_000);
});
