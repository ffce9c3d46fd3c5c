import { GetParameterCommand, SSMClient, type SSMClientConfig } from "@aws-sdk/client-ssm";
import { AWS_ATTEMPTS, AWS_TIMEOUTS } from "./timeouts.ts";

/**
 * Reads a parameter's text from AWS Systems Manager, decrypted. A file of its own, to be imported when it is needed.
 */
export function createParameterStoreReader(overrides: SSMClientConfig) {
  const client = new SSMClient({ requestHandler: AWS_TIMEOUTS, maxAttempts: AWS_ATTEMPTS, ...overrides });
  return async (name: string): Promise<string | undefined> => {
    const { Parameter } = await client.send(new GetParameterCommand({ Name: name, WithDecryption: true }));
    return Parameter?.Value;
  };
}
