import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { toEnvironments } from "../../cdk/deploy-settings.ts";
import { MAX_JOB_TIMEOUT_MS } from "../../cdk/timeouts.ts";
import { AWS_TIMEOUTS } from "../../functions/aws/timeouts.ts";
import { ROUTES } from "../../functions/contract/api.ts";
import { HttpEnv, NotifyEnv, parseEnv, ReconcileEnv, RefreshEnv } from "../../functions/contract/env.ts";
import { DEFAULT_LIMITS } from "../../functions/contract/limits.ts";
import { LISTING_DEADLINE_MS, REQUESTED_LISTING_DEADLINE_MS } from "../../functions/contract/refresh-limits.ts";
import { OperatorSettings } from "../../functions/contract/settings.ts";
import { ROOT } from "./kit/run-app.ts";
import { grantsOf, type Properties, resourcesOf, stackMaker, toWords } from "./kit/stack-template.ts";

const makeStack = stackMaker();
const SECRETS = [
  { store: "secretsmanager", name: "mcp/github" },
  { store: "secretsmanager", name: "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shared/key-a1B2c3" },
  { store: "ssm", name: "/mcp/token" },
] as const;

const stack = makeStack({ settings: { tools: ["local", "data_table@1"] } });
const template = Template.fromStack(stack);
const withServers = Template.fromStack(
  makeStack({ settings: { debounceSeconds: 2.6 }, servers: { names: ["github"], secrets: SECRETS } }),
);
const FUNCTIONS = [
  "HttpFunction",
  "RefreshPathNotifyFunction",
  "RefreshPathRefreshFunction",
  "RefreshPathReconcileFunction",
];

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

describe("the functions", () => {
  test("are four, on Node 24, on ARM, each as large as its work", () => {
    expect([...resourcesOf(template, "AWS::Lambda::Function").keys()].sort()).toEqual(FUNCTIONS.toSorted());
    for (const name of FUNCTIONS) {
      expect(functionOf(name)).toMatchObject({
        Runtime: "nodejs24.x",
        Architectures: ["arm64"],
        Handler: "index.handler",
      });
    }
    expect(FUNCTIONS.map((name) => functionOf(name).MemorySize)).toEqual([1769, 512, 1769, 512]);
  });

  test.each([
    ["HttpFunction", HttpEnv],
    ["RefreshPathNotifyFunction", NotifyEnv],
    ["RefreshPathRefreshFunction", RefreshEnv],
    ["RefreshPathReconcileFunction", ReconcileEnv],
  ] as const)("%s has the environment that its code reads, no more and no less", (name, schema) => {
    const { Variables } = functionOf(name).Environment;
    expect(Object.keys(Variables).sort()).toEqual(Object.keys(schema.shape).sort());
    const places = new Map([
      ["StoreBucket", "a-bucket"],
      ["QueuesNotifications", "https://sqs.test/notifications"],
      ["QueuesRefreshes", "https://sqs.test/refreshes.fifo"],
    ]);
    const words = Object.entries<Properties>(Variables).map(([key, value]) => [key, toWords(value)] as const);
    const env = Object.fromEntries(words.map(([key, value]) => [key, places.get(value) ?? value]));
    expect(parseEnv(schema, env)).toMatchObject({ BUCKET_NAME: "a-bucket" });
    if ("NOTIFICATIONS_QUEUE_URL" in env) expect(env.NOTIFICATIONS_QUEUE_URL).toBe("https://sqs.test/notifications");
    if ("REFRESH_QUEUE_URL" in env) expect(env.REFRESH_QUEUE_URL).toBe("https://sqs.test/refreshes.fifo");
  });

  test("are told every setting that the operator chose", () => {
    const settings = OperatorSettings.parse({
      tools: ["create_pdf@1"],
      limits: { max_calls: 3 },
      auth: "none",
      artifactDays: 30,
      debounceSeconds: 2.5,
      longestWaitSeconds: 40,
      reconcileSeconds: 120,
      maxListAgeSeconds: 7_200,
    });
    const { http, notify, refresh, reconcile } = toEnvironments(settings);
    const places = {
      BUCKET_NAME: "a-bucket",
      NOTIFICATIONS_QUEUE_URL: "https://sqs.test/notifications",
      REFRESH_QUEUE_URL: "https://sqs.test/refreshes.fifo",
    };
    expect(parseEnv(HttpEnv, { ...places, ...http })).toMatchObject({
      APPROVED_TOOLS: ["create_pdf@1"],
      LIMITS: { max_calls: 3 },
      AUTH: "none",
      ARTIFACT_DAYS: 30,
      MAX_LIST_AGE_SECONDS: 7_200,
    });
    expect(parseEnv(NotifyEnv, { ...places, ...notify })).toMatchObject({ DEBOUNCE_SECONDS: 2.5 });
    expect(parseEnv(RefreshEnv, { ...places, ...refresh })).toMatchObject({
      APPROVED_TOOLS: ["create_pdf@1"],
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

  test("that fetch lists have time left to publish what came of it", () => {
    expect(functionOf("RefreshPathRefreshFunction").Timeout * 1000 - LISTING_DEADLINE_MS).toBeGreaterThanOrEqual(
      15_000,
    );
  });

  test("cannot feed each other in a circle: AWS ends a loop, and no function sends to what it reads", () => {
    for (const name of FUNCTIONS) {
      expect(functionOf(name).RecursiveLoop).toBe("Terminate");
      const queuesFor = (action: string) =>
        grantsOf(template, name).flatMap((grant) => (grant.action === action ? grant.resource : []));
      const read = queuesFor("sqs:ReceiveMessage");
      expect(queuesFor("sqs:SendMessage").filter((queue) => read.includes(queue))).toEqual([]);
    }
    expect(grantsOf(template, "RefreshPathRefreshFunction").map(({ action }) => action)).not.toContain(
      "sqs:SendMessage",
    );
  });
});

describe("logs", () => {
  test("are kept for a month, one a function and one of the API", () => {
    const groups = resourcesOf(template, "AWS::Logs::LogGroup");
    expect([...groups.values()].map(({ RetentionInDays }) => RetentionInDays)).toEqual([30, 30, 30, 30, 30]);
    const used = FUNCTIONS.map((name) => toWords(functionOf(name).LoggingConfig.LogGroup));
    expect(new Set(used).size).toBe(FUNCTIONS.length);
    for (const name of used) expect([...groups.keys()]).toContain(name);
  });

  test("are counted: errors of every function, refused repositories and servers where they show, none as zero", () => {
    const counted = propertiesOf("AWS::Logs::MetricFilter").map(
      ({ LogGroupName, FilterPattern, MetricTransformations }) => {
        expect(MetricTransformations).toEqual([
          expect.objectContaining({ MetricNamespace: "skillbroker", MetricValue: "1", DefaultValue: 0 }),
        ]);
        return `${toWords(LogGroupName)} ${MetricTransformations[0].MetricName} ${FilterPattern}`;
      },
    );
    expect(counted.sort()).toEqual([
      'HttpLog Errors { $.level = "error" }',
      'HttpLog RepositoryRefused { $.code = "REPOSITORY_REFUSED" }',
      'RefreshPathNotifyLog Errors { $.level = "error" }',
      'RefreshPathReconcileLog Errors { $.level = "error" }',
      'RefreshPathRefreshLog Errors { $.level = "error" }',
      'RefreshPathRefreshLog RepositoryRefused { $.code = "REPOSITORY_REFUSED" }',
      'RefreshPathRefreshLog ServerUnavailable { $.code = "SERVER_UNAVAILABLE" }',
    ]);
  });
});

describe("the roles", () => {
  const ownLog = (log: string) => [`logs:CreateLogStream ${log}.Arn`, `logs:PutLogEvents ${log}.Arn`];
  const consume = (queue: string) => [
    `sqs:DeleteMessage ${queue}.Arn`,
    `sqs:GetQueueAttributes ${queue}.Arn`,
    `sqs:ReceiveMessage ${queue}.Arn`,
  ];
  const ALLOWED = {
    HttpFunction: [
      ...ownLog("HttpLog"),
      "s3:DeleteObject StoreBucket.Arn/artifacts/*",
      "s3:GetObject StoreBucket.Arn/artifacts/*",
      "s3:GetObject StoreBucket.Arn/catalog/current.json",
      "s3:GetObject StoreBucket.Arn/jobs/*",
      "s3:ListBucket StoreBucket.Arn",
      "s3:PutObject StoreBucket.Arn/artifacts/*",
      "s3:PutObject StoreBucket.Arn/catalog/current.json",
      "s3:PutObject StoreBucket.Arn/jobs/*",
      "sqs:SendMessage QueuesNotifications.Arn",
    ],
    RefreshPathNotifyFunction: [
      ...ownLog("RefreshPathNotifyLog"),
      "s3:GetObject StoreBucket.Arn/debounce/*",
      "s3:ListBucket StoreBucket.Arn",
      "s3:PutObject StoreBucket.Arn/debounce/*",
      ...consume("QueuesNotifications"),
      "sqs:SendMessage QueuesRefreshes.Arn",
    ],
    RefreshPathRefreshFunction: [
      ...ownLog("RefreshPathRefreshLog"),
      "s3:GetObject StoreBucket.Arn/catalog/current.json",
      "s3:GetObject StoreBucket.Arn/debounce/*",
      "s3:ListBucket StoreBucket.Arn",
      "s3:PutObject StoreBucket.Arn/catalog/current.json",
      ...consume("QueuesRefreshes"),
    ],
    RefreshPathReconcileFunction: [
      ...ownLog("RefreshPathReconcileLog"),
      "s3:GetObject StoreBucket.Arn/catalog/current.json",
      "s3:ListBucket StoreBucket.Arn",
      "sqs:SendMessage QueuesNotifications.Arn",
    ],
  } as const;
  const allowedTo = (name: string, from = template) =>
    grantsOf(from, name).map(({ action, resource }) => `${action} ${resource}`);

  test.each(Object.entries(ALLOWED))("of %s allows what its code does, and nothing else", (name, allowed) => {
    expect(allowedTo(name).toSorted()).toEqual(allowed);
  });

  test("are one a function, and only Lambda takes them on", () => {
    const roles = propertiesOf("AWS::IAM::Role");
    expect(roles).toHaveLength(FUNCTIONS.length);
    for (const { AssumeRolePolicyDocument } of roles) {
      expect(AssumeRolePolicyDocument.Statement).toMatchObject([
        { Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" } },
      ]);
    }
    expect(new Set(FUNCTIONS.map((name) => toWords(functionOf(name).Role))).size).toBe(FUNCTIONS.length);
  });

  test.each([
    ["HttpFunction", ["artifacts/*", "jobs/*", "catalog/current.json"]],
    ["RefreshPathNotifyFunction", ["debounce/*"]],
    ["RefreshPathRefreshFunction", ["catalog/current.json", "debounce/*"]],
    ["RefreshPathReconcileFunction", ["catalog/current.json"]],
  ])("of %s lists what it may read, and is told 404 instead of 403 for one missing object", (name, prefixes) => {
    const listing = grantsOf(template, name).filter(({ action }) => action === "s3:ListBucket");
    expect(listing.map(({ condition }) => condition)).toEqual([{ StringLikeIfExists: { "s3:prefix": prefixes } }]);
  });

  test("hold no wildcard action, and with secrets too no wildcard beyond a prefix", () => {
    for (const from of [template, withServers]) {
      const all = FUNCTIONS.flatMap((name) => grantsOf(from, name));
      expect(all.filter(({ action }) => action.includes("*"))).toEqual([]);
      const wide = all
        .filter(({ resource }) => /[*?]/.test(resource))
        .map(({ action, resource }) => `${action} ${resource}`);
      const keys = "kms:Decrypt arn:<Partition>:kms:<Region>:<AccountId>:key/*";
      const known = [/^s3:\w+ StoreBucket\.Arn\/(artifacts|jobs|debounce)\/\*$/, /:secret:mcp\/github-\?{6}$/];
      expect(wide.filter((grant) => grant !== keys && !known.some((pattern) => pattern.test(grant)))).toEqual([]);
    }
  });

  describe("where servers name secrets", () => {
    const added = (name: string) =>
      allowedTo(name, withServers).filter((grant) => !allowedTo(name, template).includes(grant));
    const place = "<Region>:<AccountId>";

    test.each(["HttpFunction", "RefreshPathRefreshFunction"])("let %s read exactly these", (name) => {
      expect(added(name).toSorted()).toEqual([
        `kms:Decrypt arn:<Partition>:kms:${place}:key/*`,
        `kms:Decrypt arn:<Partition>:kms:${place}:key/*`,
        "secretsmanager:GetSecretValue arn:<Partition>:secretsmanager:<Region>:<AccountId>:secret:mcp/github-??????",
        "secretsmanager:GetSecretValue arn:aws:secretsmanager:eu-west-1:123456789012:secret:shared/key-a1B2c3",
        `ssm:GetParameter arn:<Partition>:ssm:${place}:parameter/mcp/token`,
      ]);
    });

    test("decrypt nothing but these, and only through the service that keeps them", () => {
      const decrypting = grantsOf(withServers, "HttpFunction").filter(({ action }) => action === "kms:Decrypt");
      const conditions: Properties[] = decrypting.map(({ condition }) => condition);
      const told = conditions.map(({ StringEquals, StringLike }) => [
        toWords(StringEquals["kms:ViaService"]),
        ...Object.entries<Properties>(StringLike).map(([key, arns]) => [key, [arns].flat().map(toWords)]),
      ]);
      expect(told).toEqual([
        [
          "secretsmanager.<Region>.<URLSuffix>",
          [
            "kms:EncryptionContext:SecretARN",
            [
              `arn:<Partition>:secretsmanager:${place}:secret:mcp/github-??????`,
              "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shared/key-a1B2c3",
            ],
          ],
        ],
        [
          "ssm.<Region>.<URLSuffix>",
          ["kms:EncryptionContext:PARAMETER_ARN", [`arn:<Partition>:ssm:${place}:parameter/mcp/token`]],
        ],
      ]);
    });

    test.each(["RefreshPathNotifyFunction", "RefreshPathReconcileFunction"])("let %s read none", (name) => {
      expect(added(name)).toEqual([]);
    });
  });
});

const queues = resourcesOf(template, "AWS::SQS::Queue");
const feeds = propertiesOf("AWS::Lambda::EventSourceMapping").map((feed) => ({
  ...feed,
  queue: toWords(feed.EventSourceArn).replace(".Arn", ""),
  function: toWords(feed.FunctionName),
}));
/** Each with its dead letters. */
const SOURCES = ["QueuesNotifications", "QueuesRefreshes"];

describe("the queues", () => {
  test("are two, each with dead letters of its own kind", () => {
    expect([...queues.keys()].sort()).toEqual(SOURCES.flatMap((name) => [name, `${name}DeadLetters`]));
    for (const name of SOURCES) {
      const { RedrivePolicy, FifoQueue } = queues.get(name);
      expect(toWords(RedrivePolicy.deadLetterTargetArn)).toBe(`${name}DeadLetters.Arn`);
      expect(queues.get(`${name}DeadLetters`).FifoQueue).toBe(FifoQueue);
    }
    expect(SOURCES.map((name) => queues.get(name).FifoQueue)).toEqual([undefined, true]);
  });

  test("get their names from CloudFormation, so that a changed queue can take the place of an old one", () => {
    for (const { QueueName } of queues.values()) expect(QueueName).toBeUndefined();
  });

  test("drop a message by the sender's id alone, never by its text", () => {
    expect(queues.get("QueuesRefreshes")).toMatchObject({
      ContentBasedDeduplication: false,
      DeduplicationScope: "queue",
      FifoThroughputLimit: "perQueue",
    });
  });

  test("hold a refresh back for the window and half a second, and a notification not at all", () => {
    expect(SOURCES.map((name) => queues.get(name).DelaySeconds)).toEqual([undefined, 1]);
    expect(resourcesOf(withServers, "AWS::SQS::Queue").get("QueuesRefreshes").DelaySeconds).toBe(4);
  });

  test("are encrypted, and closed to what does not come over TLS", () => {
    for (const { SqsManagedSseEnabled } of queues.values()) expect(SqsManagedSseEnabled).toBe(true);
    const policies = propertiesOf("AWS::SQS::QueuePolicy");
    expect(policies.flatMap(({ Queues }) => Queues.map(toWords)).sort()).toEqual([...queues.keys()].sort());
    for (const { PolicyDocument } of policies) {
      expect(PolicyDocument.Statement).toEqual([
        {
          Effect: "Deny",
          Principal: { AWS: "*" },
          Action: "sqs:*",
          Resource: expect.anything(),
          Condition: { Bool: { "aws:SecureTransport": "false" } },
        },
      ]);
    }
  });
});

describe("a function that is fed from a queue", () => {
  test("each function is fed from its own", () => {
    expect(feeds.map(({ queue, function: name }) => `${queue} -> ${name}`).sort()).toEqual([
      "QueuesNotifications -> RefreshPathNotifyFunction",
      "QueuesRefreshes -> RefreshPathRefreshFunction",
    ]);
  });

  test("a message stays hidden for six timeouts of its function and the batching window", () => {
    for (const { queue, function: name, MaximumBatchingWindowInSeconds = 0 } of feeds) {
      const least = 6 * functionOf(name).Timeout + MaximumBatchingWindowInSeconds;
      expect(queues.get(queue).VisibilityTimeout).toBeGreaterThanOrEqual(least);
    }
  });

  test("at most so many batches are worked on at once as AWS allows to be set, and no reservation turns one away", () => {
    for (const { ScalingConfig } of feeds) {
      expect(ScalingConfig.MaximumConcurrency).toBeGreaterThanOrEqual(2);
      expect(ScalingConfig.MaximumConcurrency).toBeLessThanOrEqual(1000);
    }
    for (const { ReservedConcurrentExecutions } of propertiesOf("AWS::Lambda::Function")) {
      expect(ReservedConcurrentExecutions).toBeUndefined();
    }
  });

  test("a message is tried five times and then outlives its queue's retention among the dead letters", () => {
    for (const name of SOURCES) {
      const { RedrivePolicy, MessageRetentionPeriod } = queues.get(name);
      expect(RedrivePolicy.maxReceiveCount).toBeGreaterThanOrEqual(5);
      const { MessageRetentionPeriod: ofDeadLetters } = queues.get(`${name}DeadLetters`);
      expect({ MessageRetentionPeriod, ofDeadLetters }).toEqual({
        MessageRetentionPeriod: 4 * 86_400,
        ofDeadLetters: 14 * 86_400,
      });
    }
  });

  test("the messages that failed come back, not their whole batch, and a slow server has a batch of its own", () => {
    for (const { FunctionResponseTypes } of feeds) expect(FunctionResponseTypes).toEqual(["ReportBatchItemFailures"]);
    expect(feeds.map(({ BatchSize }) => BatchSize).toSorted()).toEqual([1, 10]);
  });
});

describe("an alarm", () => {
  const alarms = resourcesOf(template, "AWS::CloudWatch::Alarm");
  const DEAD_LETTERS = SOURCES.map((name) => `${name}DeadLetters`);
  const LOOPING = ["RefreshPathNotifyFunction", "RefreshPathRefreshFunction"];

  test("goes off at the first dead letter of either queue and the first loop that AWS ended, and at silence never", () => {
    const atOne = {
      Threshold: 1,
      ComparisonOperator: "GreaterThanOrEqualToThreshold",
      EvaluationPeriods: 1,
      Period: 300,
      TreatMissingData: "notBreaching",
    };
    const dead = { Namespace: "AWS/SQS", MetricName: "ApproximateNumberOfMessagesVisible", Statistic: "Maximum" };
    const looped = { Namespace: "AWS/Lambda", MetricName: "RecursiveInvocationsDropped", Statistic: "Sum" };
    const expected = [
      ...DEAD_LETTERS.map((queue) => ({ name: `${queue}Arrived`, of: `QueueName ${queue}.QueueName`, ...dead })),
      ...LOOPING.map((name) => ({ name: `${name}LoopEnded`, of: `FunctionName ${name}`, ...looped })),
    ];
    const told = [...alarms].map(([name, { AlarmDescription: _, Dimensions, ...rest }]) => {
      const of = Dimensions.map((each: Properties) => `${each.Name} ${toWords(each.Value)}`).join();
      return { name, of, ...rest };
    });
    const byName = (a: { readonly name: string }, b: { readonly name: string }) => (a.name < b.name ? -1 : 1);
    expect(told.toSorted(byName)).toEqual(expected.map((each) => ({ ...each, ...atOne })).toSorted(byName));
  });

  test("has no action: whom to tell, the operator says", () => {
    for (const { AlarmActions, OKActions, InsufficientDataActions, ActionsEnabled } of alarms.values()) {
      expect({ AlarmActions, OKActions, InsufficientDataActions }).toEqual({});
      expect(ActionsEnabled).not.toBe(false);
    }
  });

  test("says in so many words as CloudWatch takes what it means, each something else, and has a row for operators", () => {
    const descriptions = [...alarms.values()].map(({ AlarmDescription }): string => AlarmDescription);
    expect(new Set(descriptions).size).toBe(alarms.size);
    for (const description of descriptions) {
      expect(description).toMatch(/dead letters|redrive the queue/);
      expect(description.length).toBeLessThanOrEqual(1024);
    }
    const trouble = readFileSync(join(ROOT, "docs/refresh.md"), "utf8").split("## Trouble")[1];
    for (const name of alarms.keys()) expect(trouble).toContain(`\`${name}\``);
  });
});

describe("the clock", () => {
  test("rings every minute for the reconciling function, which alone it may call", () => {
    const rule = onlyPropertiesOf("AWS::Events::Rule", withServers);
    expect(rule).toMatchObject({ ScheduleExpression: "rate(1 minute)", State: "ENABLED" });
    expect(rule.Targets.map(({ Arn }: Properties) => toWords(Arn))).toEqual(["RefreshPathReconcileFunction.Arn"]);
    const permissions = propertiesOf("AWS::Lambda::Permission", withServers);
    const ofClock = permissions.filter(({ Principal }) => Principal === "events.amazonaws.com");
    expect(ofClock.map(({ FunctionName, SourceArn }) => [toWords(FunctionName), toWords(SourceArn)])).toEqual([
      ["RefreshPathReconcileFunction.Arn", "RefreshPathEveryMinute.Arn"],
    ]);
  });

  test("does not try again what the next minute does anyway, and a run ends before the next begins", () => {
    const retrying = onlyPropertiesOf("AWS::Lambda::EventInvokeConfig", withServers);
    expect(toWords(retrying.FunctionName)).toBe("RefreshPathReconcileFunction");
    expect(retrying.MaximumRetryAttempts).toBe(0);
    expect(functionOf("RefreshPathReconcileFunction").Timeout).toBeLessThan(60);
  });

  test("is not there without servers", () => {
    expect(propertiesOf("AWS::Events::Rule")).toEqual([]);
  });
});

describe("the bucket", () => {
  const bucket = Object.values(template.findResources("AWS::S3::Bucket"))[0];

  test("is closed to the public, encrypted, and owned by its account alone", () => {
    expect(onlyPropertiesOf("AWS::S3::Bucket")).toMatchObject({
      PublicAccessBlockConfiguration: {
        BlockPublicAcls: true,
        BlockPublicPolicy: true,
        IgnorePublicAcls: true,
        RestrictPublicBuckets: true,
      },
      OwnershipControls: { Rules: [{ ObjectOwnership: "BucketOwnerEnforced" }] },
      BucketEncryption: {
        ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: "AES256" } }],
      },
    });
    expect(Object.keys(bucket?.Properties)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/WebsiteConfiguration|CorsConfiguration|AccessControl/)]),
    );
  });

  test("has a policy that only denies: what does not come over TLS 1.2", () => {
    const { PolicyDocument } = onlyPropertiesOf("AWS::S3::BucketPolicy");
    const told = PolicyDocument.Statement.map(({ Effect, Action, Condition }: Record<string, unknown>) => ({
      Effect,
      Action,
      Condition,
    }));
    expect(told).toEqual([
      { Effect: "Deny", Action: "s3:*", Condition: { Bool: { "aws:SecureTransport": "false" } } },
      { Effect: "Deny", Action: "s3:*", Condition: { NumericLessThan: { "s3:TlsVersion": 1.2 } } },
    ]);
  });

  test.each([
    ["seven days, when nothing is chosen", {}, 7],
    ["as many days as were chosen", { artifactDays: 30 }, 30],
  ])("keeps files %s, and records for a month more", (_, settings, days) => {
    const { LifecycleConfiguration } = onlyPropertiesOf("AWS::S3::Bucket", Template.fromStack(makeStack({ settings })));
    expect(LifecycleConfiguration.Rules.map(({ Id: _, ...rule }: { Id: string }) => rule)).toEqual([
      { Prefix: "artifacts/", ExpirationInDays: days, Status: "Enabled" },
      { Prefix: "jobs/", ExpirationInDays: days + 30, Status: "Enabled" },
      { Prefix: "debounce/", ExpirationInDays: 7, Status: "Enabled" },
      { AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 }, Status: "Enabled" },
    ]);
  });

  test("stays when the stack goes", () => {
    expect(bucket).toMatchObject({ DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain" });
  });
});

test("tells the address of the API, the name of the bucket, and where notifications go", () => {
  expect(Object.keys(template.findOutputs("*")).sort()).toEqual(["ApiUrl", "BucketName", "NotificationsQueueUrl"]);
});
