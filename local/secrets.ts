import { createAwsSecretReader } from "../functions/aws/secrets.ts";
import { refuse, succeed } from "../functions/contract/fault.ts";
import type { Clock, ReadSecret } from "../functions/contract/ports.ts";

/** Secrets of one machine: variables of the environment, and what lies in AWS for who has credentials. */
export function createLocalSecretReader({
  env,
  clock,
}: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}): ReadSecret {
  const readFromAws = createAwsSecretReader({ clock });
  return async (reference) => {
    if (reference.store !== "env") return readFromAws(reference);
    const value = env[reference.name];
    if (value !== undefined && value !== "") return succeed(value);
    return refuse(
      "SERVER_UNAVAILABLE",
      `the variable ${reference.name} that mcp.json names is not set; set it and start again`,
    );
  };
}
