/** Secrets by the names that policies know them by, and how many of them a policy has room for. */

/** A secret of a deployed function: a value that IAM guards. */
export type StoredSecret = { readonly store: "secretsmanager" | "ssm"; readonly name: string };

/** Where a stack is deployed; CDK tokens as well. */
export type Place = { readonly partition: string; readonly region: string; readonly account: string };

export function toSecretArn({ store, name }: StoredSecret, { partition, region, account }: Place): string {
  if (name.startsWith("arn:")) return name;
  const place = `arn:${partition}:${store}:${region}:${account}`;
  if (store === "ssm") return `${place}:parameter/${name.replace(/^\//, "")}`;
  // Secrets Manager adds six characters to the name that nobody knows before the secret is there.
  return `${place}:secret:${name}-??????`;
}

/**
 * IAM takes 10,240 bytes of policies inside a role. What the http function needs beside secrets, with a key of the
 * operator's and the longest names, is 4,000 of them.
 */
export const MAX_SECRET_BYTES = 6_200;

const LONGEST_PLACE: Place = { partition: "aws-us-gov", region: "ap-southeast-1", account: "123456789012" };
/** Two quotes and a comma. */
const PUNCTUATION = 3;

/** Each ARN is written twice: in what may be read, and in what may be decrypted. */
export function toPolicyBytes(secrets: readonly StoredSecret[]): number {
  return secrets.reduce((sum, secret) => sum + 2 * (toSecretArn(secret, LONGEST_PLACE).length + PUNCTUATION), 0);
}
