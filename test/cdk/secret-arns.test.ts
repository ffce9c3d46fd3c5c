import { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { findServers } from "../../cdk/mcp-servers.ts";
import { MAX_SECRET_BYTES, type StoredSecret, toPolicyBytes, toSecretArn } from "../../cdk/secret-arns.ts";
import { type Properties, resourcesOf, stackMaker } from "./kit/stack-template.ts";

const makeStack = stackMaker();
const HERE = { partition: "aws", region: "eu-west-1", account: "123456789012" };
const KEY = "arn:aws:kms:ap-southeast-1:123456789012:key/0a1b2c3d-12ab-34cd-56ef-1234567890ab";
/** What IAM takes of policies inside a role, blanks not counted. */
const MAX_INLINE_BYTES = 10_240;

test("a secret is named as its service does, and by its whole ARN as it is", () => {
  expect(toSecretArn({ store: "ssm", name: "/mcp/token" }, HERE)).toBe(
    "arn:aws:ssm:eu-west-1:123456789012:parameter/mcp/token",
  );
  expect(toSecretArn({ store: "secretsmanager", name: "mcp" }, HERE)).toBe(
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:mcp-??????",
  );
  const name = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:mcp-a1B2c3";
  expect(toSecretArn({ store: "secretsmanager", name }, HERE)).toBe(name);
});

/** As many secrets as fit, of both services. */
function asManyAsFit(): readonly StoredSecret[] {
  const secrets: StoredSecret[] = [];
  for (;;) {
    const store = secrets.length % 2 === 0 ? "secretsmanager" : "ssm";
    const next: StoredSecret = { store, name: `mcp/server-${String(secrets.length).padStart(3, "0")}` };
    if (toPolicyBytes([...secrets, next]) > MAX_SECRET_BYTES) return secrets;
    secrets.push(next);
  }
}

const LONGEST: ReadonlyMap<string, string> = new Map([
  ["AWS::Partition", "aws-us-gov"],
  ["AWS::Region", "ap-southeast-1"],
  ["AWS::AccountId", "123456789012"],
  ["AWS::URLSuffix", "amazonaws.com.cn"],
]);

/** With names as long as they get once it is deployed. */
function toDeployed(value: Properties): Properties {
  if (Array.isArray(value)) return value.map(toDeployed);
  if (typeof value !== "object" || value === null) return value;
  if ("Ref" in value) return LONGEST.get(value.Ref) ?? "n".repeat(63);
  if ("Fn::GetAtt" in value) return "a".repeat(150);
  if ("Fn::Join" in value) return value["Fn::Join"][1].map(toDeployed).join(value["Fn::Join"][0]);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toDeployed(member)]));
}

describe("as many secrets as are allowed", () => {
  const secrets = asManyAsFit();
  const settings = { encryptionKeyArn: KEY };
  const template = Template.fromStack(makeStack({ settings, servers: { names: ["github"], secrets } }));

  test.each(["HttpRole", "WorkerPathWorkerRole", "RefreshPathRefreshRole"])("fit into the policies of %s", (name) => {
    expect(secrets.length).toBeGreaterThan(30);
    const inside: Properties[] = resourcesOf(template, "AWS::IAM::Role").get(name).Policies;
    const attached = [...resourcesOf(template, "AWS::IAM::Policy").values()].filter(({ Roles }) =>
      JSON.stringify(Roles).includes(`"${name}`),
    );
    const documents = [...inside, ...attached].map(({ PolicyDocument }) => JSON.stringify(toDeployed(PolicyDocument)));
    expect(documents.length).toBe(2);
    expect(documents.join("").length).toBeLessThanOrEqual(MAX_INLINE_BYTES);
  });

  test("and one more is refused, with how many bytes it would take", () => {
    const declare = (all: readonly StoredSecret[]) => {
      const headers = Object.fromEntries(all.map(({ store, name }, index) => [`X-${index}`, `\${${store}:${name}}`]));
      const value = { mcpServers: { github: { url: "https://mcp.github.test/", headers } } };
      return findServers({ value }, { reserved: [] }).problems.map(({ path, message }) => `${path}: ${message}`);
    };
    expect(declare(secrets)).toEqual([]);
    expect(declare([...secrets, { store: "ssm", name: "one-more-than-there-is-room-for" }])).toEqual([
      expect.stringMatching(/^\/mcpServers: the \d+ secrets take \d+ bytes of a role's policy, at most 6200 fit; /),
    ]);
  });
});
