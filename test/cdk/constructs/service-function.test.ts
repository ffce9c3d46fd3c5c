import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Key } from "aws-cdk-lib/aws-kms";
import { describe, expect, test } from "vitest";
import {
  grantsOf,
  type Properties,
  resourcesOf,
  type StackChoices,
  stackMaker,
  toWords,
} from "../kit/stack-template.ts";

const makeStack = stackMaker();
const toTemplate = (choices?: StackChoices) => Template.fromStack(makeStack(choices));
const SECRETS = [
  { store: "secretsmanager", name: "mcp/github" },
  { store: "ssm", name: "/mcp/token" },
] as const;
const KEY = "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-12ab-34cd-56ef-1234567890ab";

const template = toTemplate();
const withServers = toTemplate({ servers: { names: ["github"], secrets: SECRETS } });
const encrypted = toTemplate({ settings: { encryptionKeyArn: KEY } });

const functions = resourcesOf(template, "AWS::Lambda::Function");
const NAMES = [
  "HttpFunction",
  "WorkerPathWorkerFunction",
  "WorkerPathDeadJobsFunction",
  "RefreshPathNotifyFunction",
  "RefreshPathRefreshFunction",
  "RefreshPathReconcileFunction",
];

describe("the functions", () => {
  test("are six, on Node 24, on ARM, each as large as its work", () => {
    expect([...functions.keys()].sort()).toEqual(NAMES.toSorted());
    for (const properties of functions.values()) {
      expect(properties).toMatchObject({ Runtime: "nodejs24.x", Architectures: ["arm64"], Handler: "index.handler" });
    }
    expect(NAMES.map((name) => functions.get(name).MemorySize)).toEqual([1769, 1769, 512, 512, 1769, 512]);
  });

  test("keep no concurrency for themselves but http, where it was chosen: of a queue it would turn messages away", () => {
    const reservedIn = (from: Template) =>
      [...resourcesOf(from, "AWS::Lambda::Function")].flatMap(([name, { ReservedConcurrentExecutions: reserved }]) =>
        reserved === undefined ? [] : [[name, reserved]],
      );
    expect(reservedIn(template)).toEqual([]);
    expect(reservedIn(toTemplate({ settings: { httpConcurrency: 5 } }))).toEqual([["HttpFunction", 5]]);
  });

  test("are traced, every one", () => {
    for (const { TracingConfig } of functions.values()) expect(TracingConfig).toEqual({ Mode: "Active" });
  });

  test("cannot feed each other in a circle: AWS ends a loop, and none sends to what it or one after it reads", () => {
    const queuesOf = (name: string, action: string) =>
      grantsOf(template, name).flatMap((grant) => (grant.action === action ? grant.resource : []));
    const reads = new Map(NAMES.map((name) => [name, queuesOf(name, "sqs:ReceiveMessage")]));
    const reachable = (name: string): readonly string[] =>
      queuesOf(name, "sqs:SendMessage").flatMap((queue) => {
        const fed = NAMES.filter((other) => reads.get(other)?.includes(queue));
        return [...fed, ...fed.flatMap(reachable)];
      });
    for (const name of NAMES) {
      expect(functions.get(name).RecursiveLoop).toBe("Terminate");
      expect(reachable(name)).not.toContain(name);
    }
    expect(reachable("HttpFunction")).toEqual(
      expect.arrayContaining(["WorkerPathWorkerFunction", "RefreshPathNotifyFunction", "RefreshPathRefreshFunction"]),
    );
  });
});

describe("the roles", () => {
  const TRACES = ["xray:PutTelemetryRecords *", "xray:PutTraceSegments *"];
  const own = (log: string) => [`logs:CreateLogStream ${log}.Arn`, `logs:PutLogEvents ${log}.Arn`, ...TRACES];
  const consume = (queue: string) => [
    `sqs:DeleteMessage ${queue}.Arn`,
    `sqs:GetQueueAttributes ${queue}.Arn`,
    `sqs:ReceiveMessage ${queue}.Arn`,
  ];
  const store = (action: string, ...keys: readonly string[]) =>
    keys.map((key) => `s3:${action}Object StoreBucket.Arn/${key}`);
  const CATALOG = "catalog/current.json";
  const ALLOWED = {
    HttpFunction: [
      ...own("HttpLog"),
      ...store("Get", "artifacts/*", "jobs/*", "idempotency/*", CATALOG),
      ...store("Put", "artifacts/*", "jobs/*", "idempotency/*", "requests/*", CATALOG),
      ...store("Delete", "artifacts/*", "requests/*"),
      "s3:ListBucket StoreBucket.Arn",
      "sqs:SendMessage Jobs.Arn",
      "sqs:SendMessage QueuesNotifications.Arn",
    ],
    WorkerPathWorkerFunction: [
      ...own("WorkerPathWorkerLog"),
      ...store("Get", "artifacts/*", "jobs/*", "requests/*", CATALOG),
      ...store("Put", "artifacts/*", "jobs/*"),
      ...store("Delete", "artifacts/*", "requests/*"),
      "s3:ListBucket StoreBucket.Arn",
      ...consume("Jobs"),
    ],
    WorkerPathDeadJobsFunction: [
      ...own("WorkerPathDeadJobsLog"),
      ...store("Get", "jobs/*"),
      ...store("Put", "jobs/*"),
      ...store("Delete", "requests/*"),
      "s3:ListBucket StoreBucket.Arn",
      ...consume("JobsDeadLetters"),
    ],
    RefreshPathNotifyFunction: [
      ...own("RefreshPathNotifyLog"),
      ...store("Get", "debounce/*"),
      ...store("Put", "debounce/*"),
      "s3:ListBucket StoreBucket.Arn",
      ...consume("QueuesNotifications"),
      "sqs:SendMessage QueuesRefreshes.Arn",
    ],
    RefreshPathRefreshFunction: [
      ...own("RefreshPathRefreshLog"),
      ...store("Get", CATALOG, "debounce/*"),
      ...store("Put", CATALOG),
      "s3:ListBucket StoreBucket.Arn",
      ...consume("QueuesRefreshes"),
    ],
    RefreshPathReconcileFunction: [
      ...own("RefreshPathReconcileLog"),
      ...store("Get", CATALOG),
      "s3:ListBucket StoreBucket.Arn",
      "sqs:SendMessage QueuesNotifications.Arn",
    ],
  } as const;
  const allowedTo = (name: string, from = template) =>
    grantsOf(from, name).map(({ action, resource }) => `${action} ${resource}`);

  test.each(Object.entries(ALLOWED))("of %s allows what its code does, and nothing else", (name, allowed) => {
    expect(allowedTo(name).toSorted()).toEqual(allowed.toSorted());
  });

  test("are one a function, and only Lambda takes them on", () => {
    const roles = [...resourcesOf(template, "AWS::IAM::Role").values()];
    expect(roles).toHaveLength(functions.size);
    for (const { AssumeRolePolicyDocument } of roles) {
      expect(AssumeRolePolicyDocument.Statement).toMatchObject([
        { Effect: "Allow", Principal: { Service: "lambda.amazonaws.com" } },
      ]);
    }
    expect(new Set(NAMES.map((name) => toWords(functions.get(name).Role))).size).toBe(functions.size);
  });

  test.each([
    ["HttpFunction", ["artifacts/*", "jobs/*", "idempotency/*", CATALOG]],
    ["WorkerPathWorkerFunction", ["artifacts/*", "jobs/*", "requests/*", CATALOG]],
    ["WorkerPathDeadJobsFunction", ["jobs/*"]],
    ["RefreshPathNotifyFunction", ["debounce/*"]],
    ["RefreshPathRefreshFunction", [CATALOG, "debounce/*"]],
    ["RefreshPathReconcileFunction", [CATALOG]],
  ])("of %s lists what it may read, and is told 404 instead of 403 for one missing object", (name, prefixes) => {
    const listing = grantsOf(template, name).filter(({ action }) => action === "s3:ListBucket");
    expect(listing.map(({ condition }) => condition)).toEqual([{ StringLikeIfExists: { "s3:prefix": prefixes } }]);
  });

  test("hold no wildcard action, and with secrets too no wildcard beyond a prefix but where AWS takes nothing else", () => {
    for (const from of [template, withServers, encrypted]) {
      const all = NAMES.flatMap((name) => grantsOf(from, name));
      expect(all.filter(({ action }) => action.includes("*"))).toEqual([]);
      const wide = all
        .filter(({ resource }) => /[*?]/.test(resource))
        .map(({ action, resource }) => `${action} ${resource}`);
      const known = [
        /^s3:\w+ StoreBucket\.Arn\/(artifacts|jobs|requests|idempotency|debounce)\/\*$/,
        /:secret:mcp\/github-\?{6}$/,
        /^xray:Put\w+ \*$/,
        /^kms:Decrypt arn:<Partition>:kms:<Region>:<AccountId>:key\/\*$/,
      ];
      expect(wide.filter((grant) => !known.some((pattern) => pattern.test(grant)))).toEqual([]);
    }
  });

  test.each(NAMES)(
    "of %s may use the operator's key, exactly that one and for no more than reading and writing",
    (name) => {
      const before = allowedTo(name);
      expect(allowedTo(name, encrypted).filter((grant) => !before.includes(grant))).toEqual([
        `kms:Decrypt ${KEY}`,
        `kms:GenerateDataKey ${KEY}`,
      ]);
    },
  );
});

describe("logs", () => {
  const groupsIn = (from: Template) => resourcesOf(from, "AWS::Logs::LogGroup");

  test("are one a function and one of the API", () => {
    const used = NAMES.map((name) => toWords(functions.get(name).LoggingConfig.LogGroup));
    expect(new Set(used).size).toBe(NAMES.length);
    expect([...groupsIn(template).keys()].sort()).toEqual([...used, "ApiAccessLog"].sort());
  });

  test.each([
    ["a month, when nothing is chosen", {}, 30],
    ["as many days as were chosen", { logDays: 400 }, 400],
  ])("are kept for %s, every one", (_, settings, days) => {
    const kept = [...groupsIn(toTemplate({ settings })).values()].map(({ RetentionInDays }) => RetentionInDays);
    expect(new Set(kept)).toEqual(new Set([days]));
  });

  const keysOf = (from: Template) => [...groupsIn(from).values()].map(({ KmsKeyId }) => KmsKeyId);

  test("are under a key whose policy can be written here, and that policy lets CloudWatch in for logs of this account", () => {
    const stack = makeStack({ props: (beside) => ({ encryptionKey: new Key(beside, "Key") }) });
    const keys = keysOf(Template.fromStack(stack));
    expect(new Set(keys.map((key) => JSON.stringify(key))).size).toBe(1);
    expect(keys[0]).toMatchObject({ "Fn::ImportValue": expect.stringContaining("Key") });
    const beside = stack.node.root.node.findChild("Beside");
    if (!(beside instanceof Stack)) throw new TypeError("the key is made in a stack");
    const made = [...resourcesOf(Template.fromStack(beside), "AWS::KMS::Key").values()];
    const statements: readonly Properties[] = made.flatMap(({ KeyPolicy }) => KeyPolicy.Statement);
    const ofLogs = statements.filter(({ Principal }) => "Service" in Principal);
    expect(ofLogs).toHaveLength(1);
    expect(ofLogs[0]).toMatchObject({ Effect: "Allow", Principal: { Service: "logs.amazonaws.com" } });
    expect(ofLogs[0].Action.filter((action: string) => action.includes("*"))).toEqual([]);
    expect(toWords(ofLogs[0].Condition.ArnLike["kms:EncryptionContext:aws:logs:arn"])).toBe(
      "arn:<Partition>:logs:<Region>:<AccountId>:log-group:*",
    );
  });

  test("are under CloudWatch's own key where nothing can be added to the policy of the operator's", () => {
    expect(new Set(keysOf(encrypted))).toEqual(new Set([undefined]));
    expect(new Set(keysOf(template))).toEqual(new Set([undefined]));
  });
});
