import { Aws, RemovalPolicy } from "aws-cdk-lib";
import { PolicyStatement, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import { LogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";

export type LogGroupChoices = {
  /** One of the numbers of days that CloudWatch keeps logs for. */
  readonly days: number;
  /**
   * Used where its policy can be written here, so that of a key made elsewhere CloudWatch's own key is used instead.
   */
  readonly encryptionKey: IKey | undefined;
};

/** A log that is kept for so many days and goes with the stack. */
export function addLogGroup(scope: Construct, id: string, { days, encryptionKey }: LogGroupChoices): LogGroup {
  return new LogGroup(scope, id, {
    retention: days,
    removalPolicy: RemovalPolicy.DESTROY,
    ...(encryptionKey !== undefined && tryToLetLogsUse(encryptionKey) ? { encryptionKey } : {}),
  });
}

/**
 * Adds to the key's policy, and says whether that was possible. CloudWatch Logs asks that policy, not a role. A log
 * group whose key does not let it in cannot be made at all, and to a key that is only known by its ARN nothing can be
 * added.
 */
function tryToLetLogsUse(key: IKey): boolean {
  const statement = new PolicyStatement({
    sid: "EncryptLogGroups",
    principals: [new ServicePrincipal("logs.amazonaws.com")],
    actions: [
      "kms:Decrypt",
      "kms:DescribeKey",
      "kms:Encrypt",
      "kms:GenerateDataKey",
      "kms:ReEncryptFrom",
      "kms:ReEncryptTo",
    ],
    resources: ["*"],
    conditions: {
      ArnLike: {
        "kms:EncryptionContext:aws:logs:arn": `arn:${Aws.PARTITION}:logs:${Aws.REGION}:${Aws.ACCOUNT_ID}:log-group:*`,
      },
    },
  });
  return key.addToResourcePolicy(statement).statementAdded;
}
