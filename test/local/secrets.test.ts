import { expect, onTestFinished, test } from "vitest";
import type { SecretReference } from "../../functions/contract/mcp-server.ts";
import { createLocalSecretReader } from "../../local/secrets.ts";
import { startAwsJsonServer } from "../kit/aws-json-server.ts";
import { TEST_CREDENTIALS } from "../kit/s3-client.ts";
import "../kit/to-fail.ts";

const TOKEN: SecretReference = { store: "env", name: "TOKEN" };

test("a variable is read each time, so that a new value is used", async () => {
  const env: Record<string, string> = { TOKEN: "old" };
  const read = createLocalSecretReader({ env, clock: () => 0 });
  expect(await read(TOKEN)).toEqual({ ok: true, value: "old" });
  env.TOKEN = "new";
  expect(await read(TOKEN)).toEqual({ ok: true, value: "new" });
  expect(await read(TOKEN, { fresh: true })).toEqual({ ok: true, value: "new" });
});

test.each([[{}], [{ TOKEN: "" }]])("a variable that is not set is named: %j", async (env) => {
  const outcome = await createLocalSecretReader({ env, clock: () => 0 })(TOKEN);
  expect(outcome).toFail("SERVER_UNAVAILABLE");
  expect(outcome.ok ? "" : outcome.fault.message).toContain("TOKEN");
});

test("a secret in AWS is remembered, and read anew by who wants it fresh", async () => {
  const aws = await startAwsJsonServer();
  onTestFinished(() => aws.close());
  aws.say({ body: { SecretString: "old" } }, { body: { SecretString: "new" } });
  const client = { endpoint: aws.url, region: "eu-central-1", credentials: TEST_CREDENTIALS };
  const read = createLocalSecretReader({ env: {}, clock: () => 0, client });
  const reference: SecretReference = { store: "secretsmanager", name: "mcp/token" };
  await read(reference);
  expect(await read(reference)).toEqual({ ok: true, value: "old" });
  expect(await read(reference, { fresh: true })).toEqual({ ok: true, value: "new" });
});
