import { type AwsSecretReaderOptions, createAwsSecretReader } from "../functions/aws/secrets.ts";
import { refuse, succeed } from "../functions/contract/fault.ts";
import type { ReadSecret } from "../functions/contract/ports.ts";

export type LocalSecretReaderOptions = Pick<AwsSecretReaderOptions, "clock" | "client"> & {
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** Secrets of one machine: variables of the environment, and what lies in AWS for who has credentials. */
export function createLocalSecretReader({ env, ...aws }: LocalSecretReaderOptions): ReadSecret {
  const readFromAws = createAwsSecretReader(aws);
  return async (reference, options) => {
    if (reference.store !== "env") return readFromAws(reference, options);
    const value = env[reference.name];
    if (value !== undefined && value !== "") return succeed(value);
    return refuse(
      "SERVER_UNAVAILABLE",
      `the variable ${reference.name} that mcp.json names is not set; set it and start again`,
    );
  };
}
