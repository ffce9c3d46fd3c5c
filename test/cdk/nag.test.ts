import { Validations } from "aws-cdk-lib";
import { Key } from "aws-cdk-lib/aws-kms";
import { AwsSolutionsChecks } from "cdk-nag";
import type { IConstruct } from "constructs";
import { describe, expect, test } from "vitest";
import { type StackChoices, stackMaker } from "./kit/stack-template.ts";

const makeStack = stackMaker();
const SECRETS = [
  { store: "secretsmanager", name: "mcp/github" },
  { store: "ssm", name: "/mcp/token" },
] as const;
const JWT = { issuer: "https://login.example.com/", audience: ["skillbroker"] } as const;

const CONFIGURATIONS: readonly (readonly [string, StackChoices])[] = [
  ["as it is shipped", {}],
  ["with tokens", { settings: { auth: JWT } }],
  [
    "with a key by its ARN",
    { settings: { encryptionKeyArn: "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-12ab-34cd-56ef-1234567890ab" } },
  ],
  [
    "with a key of the app",
    { props: (stack) => ({ encryptionKey: new Key(stack, "Key", { enableKeyRotation: true }) }) },
  ],
  ["with servers and secrets", { servers: { names: ["github"], secrets: SECRETS } }],
  ["that goes with its files", { settings: { dataAtRemoval: "delete" } }],
  [
    "with a topic, a concurrency and tags",
    {
      settings: {
        alarmTopicArn: "arn:aws:sns:eu-west-1:123456789012:on-call",
        httpConcurrency: 50,
        tags: { team: "docs" },
      },
    },
  ],
];

type Finding = { readonly rule: string; readonly path: string };

/** Errors and warnings of the AWS Solutions rules, one for each rule and resource. */
function findingsIn(root: IConstruct, pack = new AwsSolutionsChecks()): readonly Finding[] {
  const { violations } = pack.validateScope(root);
  return violations.flatMap(({ ruleName: rule, violatingResources }) =>
    violatingResources.map(({ constructPath: path = "" }) => ({ rule, path })),
  );
}

/** The rules as if nothing was excused. */
function strictRules(): AwsSolutionsChecks {
  const pack = new AwsSolutionsChecks();
  Object.defineProperty(pack, "isAcknowledged", { value: () => false });
  return pack;
}

type Excused = Finding & { readonly reason: string };

function excusesIn(root: IConstruct): readonly Excused[] {
  return root.node.findAll().flatMap(({ node }) =>
    node.metadata
      .filter(({ type }) => type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
      .flatMap(({ data }) => Object.entries<string>(data))
      .map(([id, reason]) => ({ rule: id.replace(/^Annotation::/i, ""), path: node.path, reason })),
  );
}

describe.each(CONFIGURATIONS)("a stack %s", (_, choices) => {
  const { root } = makeStack(choices).node;
  const all = findingsIn(root, strictRules());
  const excuses = excusesIn(root);

  test("gives the rules nothing to find that is not excused", () => {
    expect(findingsIn(root)).toEqual([]);
  });

  test("excuses nothing but wildcards in the policies of roles, each by its exact text", () => {
    expect(excuses.length).toBeGreaterThan(0);
    for (const { rule, path } of excuses) {
      expect(rule).toMatch(/^AwsSolutions-IAM5\[Resource::.+\]$/);
      expect(path).toMatch(/\/Role$/);
    }
  });

  test("has an excuse for nothing that the rules would not find, nor one without a reason", () => {
    for (const { rule, path, reason } of excuses) {
      expect(all.filter((finding) => finding.rule === rule && finding.path.startsWith(`${path}/`))).not.toEqual([]);
      expect(reason.length).toBeGreaterThanOrEqual(40);
    }
  });
});

test("an API that is open to everybody is found, and not excused", () => {
  const { root } = makeStack({ settings: { auth: "none" } }).node;
  expect(new Set(findingsIn(root).map(({ rule }) => rule))).toEqual(new Set(["AwsSolutions-APIG4"]));
});
