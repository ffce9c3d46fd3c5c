import { Validations } from "aws-cdk-lib";
import type { Construct } from "constructs";

/**
 * Findings of the AWS Solutions rules (cdk-nag) that stay, each excused on the one resource that it is about, so that
 * an app which has these rules checked hears of the stack no more than there is to hear. Nothing is excused as a whole.
 */

export type Excuse = {
  /** What the rule found, as it says it: the wildcard of the policy. */
  readonly finding: string;
  /** Why it cannot be narrower, for who reviews the security of the app. */
  readonly reason: string;
};

/** A wildcard in the policies of a role, which rule IAM5 wants to have explained one by one. */
export function excuseWildcard(role: Construct, { finding, reason }: Excuse): void {
  Validations.of(role).acknowledge({ id: `AwsSolutions-IAM5[${finding}]`, reason });
}
