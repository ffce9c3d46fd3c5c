import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { toEnvironments } from "../../cdk/deploy-settings.ts";
import { MAX_JOB_TIMEOUT_MS } from "../../cdk/timeouts.ts";
import { AWS_TIMEOUTS } from "../../functions/aws/timeouts.ts";
import { ROUTES } from "../../functions/contract/api.ts";
import {
  DeadJobsEnv,
  HttpEnv,
  NotifyEnv,
  parseEnv,
  ReconcileEnv,
  RefreshEnv,
  WorkerEnv,
} from "../../functions/contract/env.ts";
import { DEFAULT_LIMITS } from "../../functions/contract/limits.ts";
import { REQUESTED_LISTING_DEADLINE_MS } from "../../functions/contract/refresh-limits.ts";
import { OperatorSettings } from "../../functions/contract/settings.ts";
import { type Properties, resourcesOf, stackMaker, toWords } from "./kit/stack-template.ts";

const makeStack = stackMaker();
const stack = makeStack({ settings: { tools: ["local", "data_table@1"] } });
const template = Template.fromStack(stack);

const propertiesOf = (type: string, from = template) => [...resourcesOf(from, type).values()];
const onlyPropertiesOf = (type: string, from = template) => {
  const all = propertiesOf(type, from);
  expect(all).toHaveLength(1);
  return all[0];
};
const functionOf = (name: string, from = template) => resourcesOf(from, "AWS::Lambda::Function").get(name);

test("knows neither account nor region", () => {
  expect(JSON.stringify(template.toJSON())).not.toMatch(/\d{12}|[a-z]{2}-[a-z]+-\d/);
  expect(stack.environment).toBe("aws://unknown-account/unknown-region");
});

describe("routes", () => {
  test("are those of the contract and a default, all to one function by payload 2.0", () => {
    const keys = propertiesOf("AWS::ApiGatewayV2::Route").map(({ RouteKey }) => RouteKey);
    expect(keys.sort()).toEqual([...ROUTES.map(({ method, path }) => `${method} ${path}`), "$default"].sort());
    expect(onlyPropertiesOf("AWS::ApiGatewayV2::Integration")).toMatchObject({
      IntegrationType: "AWS_PROXY",
      PayloadFormatVersion: "2.0",
    });
    const targets = propertiesOf("AWS::ApiGatewayV2::Route").map(({ Target }) => JSON.stringify(Target));
    expect(new Set(targets).size).toBe(1);
  });

  test("want IAM, every one", () => {
    const types = propertiesOf("AWS::ApiGatewayV2::Route").map(({ AuthorizationType }) => AuthorizationType);
    expect(new Set(types)).toEqual(new Set(["AWS_IAM"]));
    expect(Annotations.fromStack(stack).findWarning("*", Match.anyValue())).toEqual([]);
  });

  test("are open with auth none, and the synth warns of it", () => {
    const open = makeStack({ settings: { auth: "none" } });
    const types = propertiesOf("AWS::ApiGatewayV2::Route", Template.fromStack(open)).map(
      ({ AuthorizationType }) => AuthorizationType,
    );
    expect(new Set(types)).toEqual(new Set(["NONE"]));
    const warnings = Annotations.fromStack(open).findWarning("*", Match.stringLikeRegexp("skillbroker:open-api"));
    expect(warnings).toHaveLength(1);
  });

  test("may call the one function, and only this API's may", () => {
    const permissions = propertiesOf("AWS::Lambda::Permission");
    expect(permissions.length).toBeGreaterThan(0);
    for (const { Principal, SourceArn, Action, FunctionName } of permissions) {
      expect({ Principal, Action }).toEqual({
        Principal: "apigateway.amazonaws.com",
        Action: "lambda:InvokeFunction",
      });
      expect(toWords(FunctionName)).toBe("HttpFunction.Arn");
      expect(toWords(SourceArn)).toContain(":Api/");
    }
  });

  test("are logged without the caller's address or name", () => {
    const { AccessLogSettings, StageName } = onlyPropertiesOf("AWS::ApiGatewayV2::Stage");
    expect(StageName).toBe("$default");
    const format: string = AccessLogSettings.Format;
    expect(JSON.parse(format)).toMatchObject({ request_id: "$context.requestId", status: "$context.status" });
    expect(format).not.toMatch(/identity|sourceIp|userAgent|path\b/);
  });
});

/** Resource -> what its reference becomes while deploying. */
const PLACES = new Map([
  ["StoreBucket", "a-bucket"],
  ["Jobs", "https://sqs.test/jobs"],
  ["QueuesNotifications", "https://sqs.test/notifications"],
  ["QueuesRefreshes", "https://sqs.test/refreshes.fifo"],
]);
/** Variable -> the only place that it may name. */
const PLACE_OF = new Map([
  ["BUCKET_NAME", "a-bucket"],
  ["JOBS_QUEUE_URL", "https://sqs.test/jobs"],
  ["NOTIFICATIONS_QUEUE_URL", "https://sqs.test/notifications"],
  ["REFRESH_QUEUE_URL", "https://sqs.test/refreshes.fifo"],
]);

describe("the functions", () => {
  test.each([
    ["HttpFunction", HttpEnv],
    ["WorkerPathWorkerFunction", WorkerEnv],
    ["WorkerPathDeadJobsFunction", DeadJobsEnv],
    ["RefreshPathNotifyFunction", NotifyEnv],
    ["RefreshPathRefreshFunction", RefreshEnv],
    ["RefreshPathReconcileFunction", ReconcileEnv],
  ] as const)("%s has the environment that its code reads, no more and no less", (name, schema) => {
    const { Variables } = functionOf(name).Environment;
    expect(Object.keys(Variables).sort()).toEqual(Object.keys(schema.shape).sort());
    const words = Object.entries<Properties>(Variables).map(([key, value]) => [key, toWords(value)] as const);
    const parsed = parseEnv(schema, Object.fromEntries(words.map(([key, value]) => [key, PLACES.get(value) ?? value])));
    for (const [key, place] of Object.entries(parsed).filter(([key]) => /^BUCKET|_QUEUE_URL$/.test(key))) {
      expect(place).toBe(PLACE_OF.get(key));
    }
    expect(parsed).toMatchObject({ BUCKET_NAME: "a-bucket" });
  });

  test("are told every setting that the operator chose", () => {
    const settings = OperatorSettings.parse({
      tools: ["create_pdf@1"],
      limits: { max_calls: 3 },
      auth: "none",
      asyncJobSeconds: 500,
      artifactDays: 30,
      debounceSeconds: 2.5,
      longestWaitSeconds: 40,
      reconcileSeconds: 120,
      maxListAgeSeconds: 7_200,
    });
    const { http, worker, notify, refresh, reconcile } = toEnvironments(settings);
    const places = Object.fromEntries(PLACE_OF);
    expect(parseEnv(HttpEnv, { ...places, ...http })).toMatchObject({
      LIMITS: { max_calls: 3 },
      AUTH: "none",
      ASYNC_JOB_SECONDS: 500,
      ARTIFACT_DAYS: 30,
      MAX_LIST_AGE_SECONDS: 7_200,
    });
    expect(parseEnv(WorkerEnv, { ...places, ...worker })).toMatchObject({
      LIMITS: { max_calls: 3 },
      ASYNC_JOB_SECONDS: 500,
      MAX_LIST_AGE_SECONDS: 7_200,
    });
    expect(parseEnv(NotifyEnv, { ...places, ...notify })).toMatchObject({ DEBOUNCE_SECONDS: 2.5 });
    expect(parseEnv(RefreshEnv, { ...places, ...refresh })).toMatchObject({
      DEBOUNCE_SECONDS: 2.5,
      LONGEST_WAIT_SECONDS: 40,
      MAX_LIST_AGE_SECONDS: 7_200,
    });
    expect(parseEnv(ReconcileEnv, { ...places, ...reconcile })).toMatchObject({
      RECONCILE_SECONDS: 120,
      MAX_LIST_AGE_SECONDS: 7_200,
    });
  });

  test("a level ends before the one above gives up on it: request, call, job, function, integration, API", () => {
    const { TimeoutInMillis } = onlyPropertiesOf("AWS::ApiGatewayV2::Integration");
    const functionMs = functionOf("HttpFunction").Timeout * 1000;
    const order = [
      AWS_TIMEOUTS.requestTimeout,
      DEFAULT_LIMITS.call_timeout_ms,
      DEFAULT_LIMITS.job_timeout_ms,
      MAX_JOB_TIMEOUT_MS,
      functionMs,
      TimeoutInMillis,
      30_000,
    ];
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(new Set(order).size).toBe(order.length);
    expect(TimeoutInMillis - functionMs).toBeGreaterThanOrEqual(2_000);
    expect(functionMs - MAX_JOB_TIMEOUT_MS).toBeGreaterThanOrEqual(3_000);
    expect(functionMs - REQUESTED_LISTING_DEADLINE_MS).toBeGreaterThanOrEqual(5_000);
  });
});

test("tells the address of the API, the name of the bucket, and where jobs and notifications go", () => {
  const outputs = Object.keys(template.findOutputs("*")).sort();
  expect(outputs).toEqual(["ApiUrl", "BucketName", "JobsQueueUrl", "NotificationsQueueUrl"]);
});
