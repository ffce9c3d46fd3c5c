import { Aws } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { FunctionName } from "../entry-points.ts";
import type { Excuse } from "../nag-suppressions.ts";
import { type Place, type StoredSecret, toSecretArn } from "../secret-arns.ts";

/** Which functions speak to MCP servers, and so read the secrets that servers ask for. */
export const READS_SECRETS: Readonly<Record<FunctionName, boolean>> = {
  http: true,
  worker: true,
  "dead-jobs": false,
  notify: false,
  refresh: true,
  reconcile: false,
};

/** What it takes to read exactly the secrets given, and nothing when there are none. */
export function toSecretStatements(secrets: readonly StoredSecret[]): readonly PolicyStatement[] {
  return [
    ...toStatements(arnsOf(secrets, "secretsmanager"), {
      service: "secretsmanager",
      action: "secretsmanager:GetSecretValue",
      context: "SecretARN",
    }),
    ...toStatements(arnsOf(secrets, "ssm"), { service: "ssm", action: "ssm:GetParameter", context: "PARAMETER_ARN" }),
  ];
}

const HERE: Place = { partition: Aws.PARTITION, region: Aws.REGION, account: Aws.ACCOUNT_ID };
const KEYS_OF_ACCOUNT = `arn:${Aws.PARTITION}:kms:${Aws.REGION}:${Aws.ACCOUNT_ID}:key/*`;

/** The one wildcard in these statements, as the rule writes references. */
export function toSecretExcuses(secrets: readonly StoredSecret[]): readonly Excuse[] {
  if (secrets.length === 0) return [];
  const reason =
    "Which key a secret is encrypted under is not known at synth; conditions allow decrypting only through the service " +
    "that keeps it, and only with the ARNs of the declared secrets as encryption context.";
  return [{ finding: "Resource::arn:<AWS::Partition>:kms:<AWS::Region>:<AWS::AccountId>:key/*", reason }];
}

type Service = { readonly service: string; readonly action: string; readonly context: string };

/**
 * Which key a value is encrypted under is not known here, so any key of the account may be used, but for these values
 * alone: the service puts the value's ARN into the encryption context, and KMS refuses another one. The services' own
 * keys want no permission.
 */
function toStatements(arns: readonly string[], { service, action, context }: Service): readonly PolicyStatement[] {
  if (arns.length === 0) return [];
  const read = new PolicyStatement({ actions: [action], resources: [...arns] });
  const decrypt = new PolicyStatement({
    actions: ["kms:Decrypt"],
    resources: [KEYS_OF_ACCOUNT],
    conditions: {
      StringEquals: { "kms:ViaService": `${service}.${Aws.REGION}.${Aws.URL_SUFFIX}` },
      StringLike: { [`kms:EncryptionContext:${context}`]: arns },
    },
  });
  return [read, decrypt];
}

function arnsOf(secrets: readonly StoredSecret[], store: StoredSecret["store"]): readonly string[] {
  return secrets.filter((secret) => secret.store === store).map((secret) => toSecretArn(secret, HERE));
}
