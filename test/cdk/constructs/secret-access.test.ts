import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { grantsOf, type Properties, stackMaker, toWords } from "../kit/stack-template.ts";

const makeStack = stackMaker();
const SECRETS = [
  { store: "secretsmanager", name: "mcp/github" },
  { store: "secretsmanager", name: "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shared/key-a1B2c3" },
  { store: "ssm", name: "/mcp/token" },
] as const;

const without = Template.fromStack(makeStack());
const withSecrets = Template.fromStack(makeStack({ servers: { names: ["github"], secrets: SECRETS } }));
const allowedTo = (name: string, from: Template) =>
  grantsOf(from, name).map(({ action, resource }) => `${action} ${resource}`);
const added = (name: string) => {
  const before = allowedTo(name, without);
  return allowedTo(name, withSecrets).filter((grant) => !before.includes(grant));
};
const place = "<Region>:<AccountId>";

const READERS = ["HttpFunction", "WorkerPathWorkerFunction", "RefreshPathRefreshFunction"];
const OTHERS = ["WorkerPathDeadJobsFunction", "RefreshPathNotifyFunction", "RefreshPathReconcileFunction"];

describe("where servers name secrets", () => {
  test.each(READERS)("%s may read exactly these", (name) => {
    expect(added(name).toSorted()).toEqual([
      `kms:Decrypt arn:<Partition>:kms:${place}:key/*`,
      `kms:Decrypt arn:<Partition>:kms:${place}:key/*`,
      "secretsmanager:GetSecretValue arn:<Partition>:secretsmanager:<Region>:<AccountId>:secret:mcp/github-??????",
      "secretsmanager:GetSecretValue arn:aws:secretsmanager:eu-west-1:123456789012:secret:shared/key-a1B2c3",
      `ssm:GetParameter arn:<Partition>:ssm:${place}:parameter/mcp/token`,
    ]);
  });

  test.each(READERS)("%s decrypts nothing but these, and only through the service that keeps them", (name) => {
    const decrypting = grantsOf(withSecrets, name).filter(({ action }) => action === "kms:Decrypt");
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
            "arn:aws:secretsmanager:eu-west-1:123456789012:secret:shared/key-a1B2c3",
            `arn:<Partition>:secretsmanager:${place}:secret:mcp/github-??????`,
          ],
        ],
      ],
      [
        "ssm.<Region>.<URLSuffix>",
        ["kms:EncryptionContext:PARAMETER_ARN", [`arn:<Partition>:ssm:${place}:parameter/mcp/token`]],
      ],
    ]);
  });

  test.each(OTHERS)("%s may read none", (name) => {
    expect(added(name)).toEqual([]);
  });
});
