import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createAwsSecretReader } from "../../../functions/aws/secrets.ts";
import type { SecretReference } from "../../../functions/contract/mcp-server.ts";
import type { ReadSecret } from "../../../functions/contract/ports.ts";
import { type AwsJsonServer, type PlannedAnswer, startAwsJsonServer, toAwsError } from "../../kit/aws-json-server.ts";
import { createManualClock, type ManualClock } from "../../kit/manual-clock.ts";
import { TEST_CREDENTIALS } from "../../kit/s3-client.ts";
import "../../kit/to-fail.ts";

const VALUE = "ghp_the-value-of-the-secret";
const TOKEN: SecretReference = { store: "secretsmanager", name: "mcp/github-token" };
const PARAMETER: SecretReference = { store: "ssm", name: "/mcp/github-token" };
const STORES = [
  { reference: TOKEN, action: "GetSecretValue", answer: { SecretString: VALUE } },
  { reference: PARAMETER, action: "GetParameter", answer: { Parameter: { Value: VALUE } } },
] as const;
const MINUTE_MS = 60_000;

let server: AwsJsonServer;
let clock: ManualClock;
beforeEach(async () => {
  server = await startAwsJsonServer();
  clock = createManualClock(Date.UTC(2027, 0, 31));
});
afterEach(() => server.close());

function open(keepMs?: number): ReadSecret {
  const client = { endpoint: server.url, region: "eu-central-1", credentials: TEST_CREDENTIALS };
  return createAwsSecretReader({ clock: clock.now, client, ...(keepMs === undefined ? {} : { keepMs }) });
}

describe("a secret", () => {
  test.each(STORES)("is read from $reference.store by its name", async ({ reference, action, answer }) => {
    server.say({ body: answer });
    expect(await open()(reference)).toEqual({ ok: true, value: VALUE });
    expect(server.requests).toMatchObject([{ action }]);
  });

  test("is asked for by its whole ARN when that is its name", async () => {
    const name = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mcp/token-AbCdEf";
    server.say({ body: { SecretString: VALUE } });
    expect(await open()({ store: "secretsmanager", name })).toEqual({ ok: true, value: VALUE });
    expect(server.requests).toEqual([{ action: "GetSecretValue", body: { SecretId: name } }]);
  });

  test("of the parameter store is decrypted", async () => {
    server.say({ body: { Parameter: { Value: VALUE } } });
    await open()(PARAMETER);
    expect(server.requests).toEqual([{ action: "GetParameter", body: { Name: PARAMETER.name, WithDecryption: true } }]);
  });

  test("is used for five minutes and asked for again after them", async () => {
    server.say({ body: { SecretString: "old" } }, { body: { SecretString: "new" } });
    const read = open();
    await read(TOKEN);
    clock.advance(5 * MINUTE_MS - 1);
    expect(await read(TOKEN)).toEqual({ ok: true, value: "old" });
    clock.advance(1);
    expect(await read(TOKEN)).toEqual({ ok: true, value: "new" });
    expect(server.requests).toHaveLength(2);
  });

  test("is used for as long as was said", async () => {
    server.say({ body: { SecretString: VALUE } });
    const read = open(1000);
    await read(TOKEN);
    clock.advance(999);
    await read(TOKEN);
    expect(server.requests).toHaveLength(1);
    clock.advance(1);
    await read(TOKEN);
    expect(server.requests).toHaveLength(2);
  });

  test("is asked for once by many who ask at the same time", async () => {
    server.say({ body: { SecretString: VALUE } });
    const read = open();
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => read(TOKEN)));
    expect(outcomes).toEqual(outcomes.map(() => ({ ok: true, value: VALUE })));
    expect(server.requests).toHaveLength(1);
  });

  test("is asked for again by who wants it fresh, and what came is then used by all", async () => {
    server.say({ body: { SecretString: "old" } }, { body: { SecretString: "new" } });
    const read = open();
    await read(TOKEN);
    expect(await read(TOKEN, { fresh: false })).toEqual({ ok: true, value: "old" });
    expect(await read(TOKEN, { fresh: true })).toEqual({ ok: true, value: "new" });
    expect(await read(TOKEN)).toEqual({ ok: true, value: "new" });
    expect(server.requests).toHaveLength(2);
  });

  test("that was wanted fresh is used for five minutes from then on", async () => {
    server.say(
      { body: { SecretString: "old" } },
      { body: { SecretString: "new" } },
      { body: { SecretString: "newest" } },
    );
    const read = open();
    await read(TOKEN);
    clock.advance(4 * MINUTE_MS);
    await read(TOKEN, { fresh: true });
    clock.advance(5 * MINUTE_MS - 1);
    expect(await read(TOKEN)).toEqual({ ok: true, value: "new" });
    clock.advance(1);
    expect(await read(TOKEN)).toEqual({ ok: true, value: "newest" });
  });

  test("is not taken for another of the same name elsewhere", async () => {
    server.say({ body: { SecretString: "one" } }, { body: { Parameter: { Value: "two" } } });
    const read = open();
    expect(await read({ store: "secretsmanager", name: "token" })).toMatchObject({ value: "one" });
    expect(await read({ store: "ssm", name: "token" })).toMatchObject({ value: "two" });
  });
});

describe("a secret that cannot be had", () => {
  const refusals: readonly (readonly [string, PlannedAnswer, RegExp])[] = [
    ["is not there", toAwsError("ResourceNotFoundException", VALUE), /nothing under this name/],
    ["is no such parameter", toAwsError("ParameterNotFound", VALUE), /nothing under this name/],
    ["may not be read", toAwsError("AccessDeniedException", VALUE), /secretsmanager:GetSecretValue/],
    ["cannot be decrypted", toAwsError("DecryptionFailure", VALUE), /kms:Decrypt/],
    ["fails in a way of AWS's own", toAwsError("InvalidRequestException", VALUE), /\(InvalidRequestException\)/],
    ["fails by a name that may be anything", toAwsError(VALUE, VALUE), /could not be asked$/],
    ["is answered with what is no JSON", { body: `{"SecretString": ${VALUE}` }, /could not be asked/],
    ["is answered with no JSON and an error", { status: 400, body: VALUE }, /could not be asked/],
    ["is no text", { body: { SecretBinary: Buffer.from(VALUE).toString("base64") } }, /no text/],
    ["is empty", { body: { SecretString: "" } }, /no text/],
  ];

  test.each(refusals)("because it %s is named, and nothing of its value is", async (_, answer, message) => {
    server.say(answer);
    const outcome = await open()(TOKEN);
    expect(outcome).toFail("SERVER_UNAVAILABLE");
    const fault = outcome.ok ? undefined : outcome.fault;
    expect(fault?.message).toMatch(message);
    expect(fault?.message).toContain(`\${secretsmanager:${TOKEN.name}}`);
    expect(fault?.cause).toBeUndefined();
    expect(`${fault?.stack}${JSON.stringify(fault)}`).not.toContain("the-value");
  });

  test("because a parameter may not be read names the permission that is missing", async () => {
    server.say(toAwsError("AccessDeniedException", "no"));
    const outcome = await open()(PARAMETER);
    expect(outcome.ok ? "" : outcome.fault.message).toContain("ssm:GetParameter");
  });

  test("is asked for again by the next one, and then kept", async () => {
    server.say(toAwsError("ResourceNotFoundException", "none"), { body: { SecretString: VALUE } });
    const read = open();
    expect(await read(TOKEN)).toFail("SERVER_UNAVAILABLE");
    expect(await read(TOKEN)).toEqual({ ok: true, value: VALUE });
    await read(TOKEN);
    expect(server.requests).toHaveLength(2);
  });

  test("because the service is gone is given up after three attempts", async () => {
    server.say("drop");
    expect(await open()(TOKEN)).toFail("SERVER_UNAVAILABLE");
    expect(server.requests).toHaveLength(3);
  });

  test("because it is a variable tells where to put it instead, and asks nobody", async () => {
    const outcome = await open()({ store: "env", name: "GITHUB_TOKEN" });
    expect(outcome).toFail("SERVER_UNAVAILABLE");
    expect(outcome.ok ? "" : outcome.fault.message).toContain("{secretsmanager:GITHUB_TOKEN}");
    expect(server.requests).toEqual([]);
  });
});

test("no SDK is loaded before a secret is wanted, and then only the one that it needs", () => {
  const program = `
    import { createRequire } from "node:module";
    const loaded = () => Object.keys(createRequire(import.meta.url).cache).join(" ").match(/client-(secrets-manager|ssm)(?=.dist)/g);
    const { createAwsSecretReader } = await import(process.argv[1]);
    const client = { endpoint: "http://127.0.0.1:1", region: "eu-central-1", credentials: { accessKeyId: "a", secretAccessKey: "b" } };
    const read = createAwsSecretReader({ clock: Date.now, client });
    const before = loaded();
    await read({ store: "ssm", name: "x" });
    console.log(JSON.stringify({ before, after: [...new Set(loaded())] }));`;
  const module = join(import.meta.dirname, "../../../functions/aws/secrets.ts");
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program, module], { encoding: "utf8" });
  expect(JSON.parse(stdout)).toEqual({ before: null, after: ["client-ssm"] });
});
