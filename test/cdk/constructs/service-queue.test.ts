import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { type Properties, resourcesOf, stackMaker, toWords } from "../kit/stack-template.ts";

/** What holds for every queue and every function that is fed from one, whichever there are. */

const makeStack = stackMaker();
const KEY = "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-12ab-34cd-56ef-1234567890ab";
const template = Template.fromStack(makeStack());
/** Both ends of what an operator can choose for asynchronous jobs. */
const longest = Template.fromStack(makeStack({ settings: { asyncJobSeconds: 840, asyncJobsAtOnce: 1000 } }));
const shortest = Template.fromStack(makeStack({ settings: { asyncJobSeconds: 1, asyncJobsAtOnce: 2 } }));
const encrypted = Template.fromStack(makeStack({ settings: { encryptionKeyArn: KEY } }));

const queuesIn = (from: Template) => resourcesOf(from, "AWS::SQS::Queue");
const functionsIn = (from: Template) => resourcesOf(from, "AWS::Lambda::Function");
const feedsIn = (from: Template): readonly Properties[] =>
  [...resourcesOf(from, "AWS::Lambda::EventSourceMapping").values()].map((feed) => ({
    ...feed,
    queue: toWords(feed.EventSourceArn).replace(".Arn", ""),
    function: toWords(feed.FunctionName),
  }));
/** Queue -> its dead letters. */
const deadLettersIn = (from: Template): ReadonlyMap<string, string> =>
  new Map(
    [...queuesIn(from)].flatMap(([name, { RedrivePolicy }]) =>
      RedrivePolicy === undefined
        ? []
        : [[name, toWords(RedrivePolicy.deadLetterTargetArn).replace(".Arn", "")] as const],
    ),
  );

describe("every queue", () => {
  test("has dead letters of its own and of its kind, or holds those of another one", () => {
    const deadLetters = deadLettersIn(template);
    expect([...deadLetters.keys()].sort()).toEqual(["Jobs", "QueuesNotifications", "QueuesRefreshes"]);
    expect(new Set(deadLetters.values()).size).toBe(deadLetters.size);
    expect([...deadLetters.keys(), ...deadLetters.values()].sort()).toEqual([...queuesIn(template).keys()].sort());
    for (const [name, dead] of deadLetters) {
      expect(queuesIn(template).get(dead).FifoQueue).toBe(queuesIn(template).get(name).FifoQueue);
    }
  });

  test("hands a message out five times at least, and keeps it shorter than the dead letters are kept", () => {
    for (const [name, dead] of deadLettersIn(template)) {
      const { RedrivePolicy, MessageRetentionPeriod } = queuesIn(template).get(name);
      expect(RedrivePolicy.maxReceiveCount).toBeGreaterThanOrEqual(5);
      expect(MessageRetentionPeriod).toBe(4 * 86_400);
      expect(queuesIn(template).get(dead).MessageRetentionPeriod).toBe(14 * 86_400);
    }
  });

  test("gets its name from CloudFormation, so that a changed queue can take the place of an old one", () => {
    for (const { QueueName } of queuesIn(template).values()) expect(QueueName).toBeUndefined();
  });

  test("is encrypted, by the operator's key where there is one", () => {
    for (const { SqsManagedSseEnabled, KmsMasterKeyId } of queuesIn(template).values()) {
      expect({ SqsManagedSseEnabled, KmsMasterKeyId }).toEqual({ SqsManagedSseEnabled: true });
    }
    for (const { SqsManagedSseEnabled, KmsMasterKeyId } of queuesIn(encrypted).values()) {
      expect({ SqsManagedSseEnabled, KmsMasterKeyId }).toEqual({ KmsMasterKeyId: KEY });
    }
  });

  test("is closed to what does not come over TLS, and its policy lets nobody in", () => {
    for (const from of [template, encrypted]) {
      const policies = [...resourcesOf(from, "AWS::SQS::QueuePolicy").values()];
      expect(policies.flatMap(({ Queues }) => Queues.map(toWords)).sort()).toEqual([...queuesIn(from).keys()].sort());
      for (const { Queues, PolicyDocument } of policies) {
        expect(PolicyDocument.Statement).toEqual([
          {
            Effect: "Deny",
            Principal: { AWS: "*" },
            Action: "sqs:*",
            Resource: expect.anything(),
            Condition: { Bool: { "aws:SecureTransport": "false" } },
          },
        ]);
        expect(toWords(PolicyDocument.Statement[0].Resource)).toBe(`${toWords(Queues[0])}.Arn`);
      }
    }
  });
});

describe("every function that is fed from a queue", () => {
  test("is fed from its own: notifications, refreshes, jobs, and jobs that no attempt could end", () => {
    expect(
      feedsIn(template)
        .map(({ queue, function: name }) => `${queue} -> ${name}`)
        .sort(),
    ).toEqual([
      "Jobs -> WorkerPathWorkerFunction",
      "JobsDeadLetters -> WorkerPathDeadJobsFunction",
      "QueuesNotifications -> RefreshPathNotifyFunction",
      "QueuesRefreshes -> RefreshPathRefreshFunction",
    ]);
  });

  test.each([
    ["as it is shipped", template],
    ["with the longest jobs", longest],
    ["with the shortest jobs", shortest],
  ])(
    "%s has a message hidden for six of its timeouts and the batching window, which SQS and Lambda take",
    (_, from) => {
      for (const { queue, function: name, MaximumBatchingWindowInSeconds = 0 } of feedsIn(from)) {
        const { Timeout } = functionsIn(from).get(name);
        const { VisibilityTimeout } = queuesIn(from).get(queue);
        expect(VisibilityTimeout).toBeGreaterThanOrEqual(6 * Timeout + MaximumBatchingWindowInSeconds);
        expect(VisibilityTimeout).toBeLessThanOrEqual(12 * 3600);
        expect(Timeout).toBeLessThanOrEqual(900);
      }
    },
  );

  test.each([
    ["as it is shipped", template],
    ["with the most jobs at once", longest],
    ["with the fewest jobs at once", shortest],
  ])("%s works on as many batches at once as can be set, and no reservation turns one away", (_, from) => {
    for (const { function: name, ScalingConfig } of feedsIn(from)) {
      expect(ScalingConfig.MaximumConcurrency).toBeGreaterThanOrEqual(2);
      expect(ScalingConfig.MaximumConcurrency).toBeLessThanOrEqual(1000);
      expect(functionsIn(from).get(name).ReservedConcurrentExecutions).toBeUndefined();
    }
  });

  test("gives back the messages that failed, not their whole batch", () => {
    for (const { FunctionResponseTypes } of feedsIn(template)) {
      expect(FunctionResponseTypes).toEqual(["ReportBatchItemFailures"]);
    }
  });

  test("has one message a batch where one may take all the time that there is", () => {
    const sizes = feedsIn(template).map(({ function: name, BatchSize }) => [name, BatchSize]);
    expect(Object.fromEntries(sizes)).toEqual({
      WorkerPathWorkerFunction: 1,
      WorkerPathDeadJobsFunction: 10,
      RefreshPathNotifyFunction: 10,
      RefreshPathRefreshFunction: 1,
    });
  });
});
