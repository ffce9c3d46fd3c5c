import {
  GetSecretValueCommand,
  SecretsManagerClient,
  type SecretsManagerClientConfig,
} from "@aws-sdk/client-secrets-manager";
import { AWS_ATTEMPTS, AWS_TIMEOUTS } from "./timeouts.ts";

/**
 * Reads a secret's text from AWS Secrets Manager, by name or ARN. A file of its own, to be imported when it is needed.
 */
export function createSecretsManagerReader(overrides: SecretsManagerClientConfig) {
  const client = new SecretsManagerClient({ requestHandler: AWS_TIMEOUTS, maxAttempts: AWS_ATTEMPTS, ...overrides });
  return async (name: string): Promise<string | undefined> =>
    (await client.send(new GetSecretValueCommand({ SecretId: name }))).SecretString;
}
