import { describe, expect, test } from "vitest";
import { readBatchResponse } from "./kit/batch-response.ts";
import { matches, permissionsOf } from "./kit/permissions.ts";
import { type Made, type Resource, resolve, resolveText } from "./kit/template.ts";

/** How the harness reads a template: what it takes for understood decides what the other tests show. */

const made = new Map<string, Made>([
  ["Queue", { ref: "https://queue.test/q", attributes: { Arn: "arn:q" } }],
  ["AWS::Region", { ref: "eu-central-1", attributes: {} }],
]);

describe("a value of the template", () => {
  test.each([
    { value: { Ref: "Queue" }, text: "https://queue.test/q" },
    { value: { "Fn::GetAtt": ["Queue", "Arn"] }, text: "arn:q" },
    { value: { "Fn::GetAtt": "Queue.Arn" }, text: "arn:q" },
    { value: { "Fn::Join": ["/", ["a", { Ref: "AWS::Region" }, 7]] }, text: "a/eu-central-1/7" },
    { value: { "Fn::Sub": "${Queue.Arn} in ${AWS::Region}, ${!kept}" }, text: "arn:q in eu-central-1, ${!kept}" },
    {
      value: { "Fn::Sub": ["${own}-${Queue}", { own: { Ref: "AWS::Region" } }] },
      text: "eu-central-1-https://queue.test/q",
    },
    { value: { "Fn::Select": ["1", ["a", { Ref: "AWS::Region" }]] }, text: "eu-central-1" },
    { value: 26, text: "26" },
  ])("$value becomes $text", ({ value, text }) => {
    expect(resolveText(value, { made })).toBe(text);
  });

  test("is replaced at any depth", () => {
    const value = { list: [{ deep: { Ref: "Queue" } }], plain: 1 };
    expect(resolve(value, { made })).toEqual({ list: [{ deep: "https://queue.test/q" }], plain: 1 });
  });

  test.each([
    { Ref: "Gone" },
    { "Fn::GetAtt": ["Queue", "Name"] },
    { "Fn::Sub": "${Gone}" },
    { "Fn::ImportValue": "elsewhere" },
    { deep: [{ "Fn::If": ["a", "b", "c"] }] },
  ])("%j is refused, and not passed on as it stands", (value) => {
    expect(() => resolve(value, { made })).toThrow();
  });
});

describe("a role", () => {
  const ROLES = new Map<string, Made>([["Role", { ref: "role", attributes: {} }]]);
  const statement = { Effect: "Allow", Action: ["s3:GetObject"], Resource: "arn:aws:s3:::b/jobs/*" };
  const rolesWith = (own: unknown, attached: unknown = statement) =>
    new Map<string, Resource>([
      ["Role", { Type: "AWS::IAM::Role", Properties: { Policies: [{ PolicyDocument: { Statement: [own] } }] } }],
      [
        "Policy",
        {
          Type: "AWS::IAM::Policy",
          Properties: { Roles: [{ Ref: "Role" }], PolicyDocument: { Statement: [attached] } },
        },
      ],
    ]);

  test("allows what its own and its attached policies allow, and nothing else", () => {
    const listing = {
      Effect: "Allow",
      Action: "s3:ListBucket",
      Resource: "arn:aws:s3:::b",
      Condition: { StringLikeIfExists: { "s3:prefix": ["jobs/*"] } },
    };
    const permits = permissionsOf("Role", rolesWith(listing), { made: ROLES });
    const list = { action: "s3:ListBucket", resource: "arn:aws:s3:::b" };
    expect([
      permits({ action: "s3:GetObject", resource: "arn:aws:s3:::b/jobs/1" }),
      permits({ action: "s3:GetObject", resource: "arn:aws:s3:::b/artifacts/1" }),
      permits({ action: "s3:PutObject", resource: "arn:aws:s3:::b/jobs/1" }),
      permits(list),
      permits({ ...list, conditions: new Map([["s3:prefix", "jobs/1"]]) }),
      permits({ ...list, conditions: new Map([["s3:prefix", "artifacts/"]]) }),
    ]).toEqual([true, false, false, true, true, false]);
  });

  test.each([
    { ...statement, Effect: "Deny" },
    { Effect: "Allow", NotAction: "s3:*", Resource: "*" },
    { ...statement, Condition: { StringEquals: { "aws:PrincipalTag/x": "y" } } },
  ])("with a statement that is not understood is refused: %j", (own) => {
    expect(() => permissionsOf("Role", rolesWith(own), { made: ROLES })).toThrow();
  });

  test.each([
    { pattern: "arn:aws:s3:::b/*", text: "arn:aws:s3:::b/a/b", fits: true },
    { pattern: "arn:aws:s3:::b/*", text: "arn:aws:s3:::b", fits: false },
    { pattern: "a.c", text: "abc", fits: false },
    { pattern: "a?c", text: "abc", fits: true },
  ])("by the pattern $pattern allows $text: $fits", ({ pattern, text, fits }) => {
    expect(matches(pattern, text)).toBe(fits);
  });
});

describe("an answer to a batch of a and b", () => {
  test.each([
    { answer: null, failed: [] },
    { answer: {}, failed: [] },
    { answer: { batchItemFailures: null }, failed: [] },
    { answer: { batchItemFailures: [] }, failed: [] },
    { answer: { batchItemFailures: [{ itemIdentifier: "b" }] }, failed: ["b"] },
    { answer: { batchItemFailures: [{ itemIdentifier: "c" }] }, failed: ["a", "b"] },
    { answer: { batchItemFailures: [{ itemIdentifier: "" }] }, failed: ["a", "b"] },
    { answer: { batchItemFailures: [{ itemIdentifier: null }] }, failed: ["a", "b"] },
    { answer: { batchItemFailures: [{ id: "a" }] }, failed: ["a", "b"] },
    { answer: "done", failed: ["a", "b"] },
  ])("$answer leaves $failed in the queue", ({ answer, failed }) => {
    expect([...readBatchResponse(answer, ["a", "b"])]).toEqual(failed);
  });
});
