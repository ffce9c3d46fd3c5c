import { describe, expect, test } from "vitest";
import { connectToEndpoint, signerFor } from "../../local/endpoint.ts";

const AWAY = new URL("https://abc123.execute-api.eu-central-1.amazonaws.com/");
const CREDENTIALS = { AWS_ACCESS_KEY_ID: "AKIDTEST", AWS_SECRET_ACCESS_KEY: "the secret of the tests" };

async function authorizationOf(url: URL, env: Readonly<Record<string, string>>): Promise<string | null> {
  const sign = signerFor(url, env);
  const signed = await sign?.(new Request(`${url}v1/jobs`));
  return signed?.headers.get("authorization") ?? null;
}

describe("a request to a service elsewhere", () => {
  test("bears the token of the environment, whatever credentials there are", async () => {
    expect(await authorizationOf(AWAY, { SKILLBROKER_TOKEN: "a.b.c", ...CREDENTIALS })).toBe("Bearer a.b.c");
  });

  test("needs no region for a token, since nothing is signed", async () => {
    expect(await authorizationOf(new URL("https://skills.acme.test/"), { SKILLBROKER_TOKEN: "a.b.c" })).toBe(
      "Bearer a.b.c",
    );
    expect(() => signerFor(new URL("https://skills.acme.test/"), {})).toThrow("set AWS_REGION");
  });

  test("with a token that no header can carry is refused without showing it", async () => {
    const refused = authorizationOf(AWAY, { SKILLBROKER_TOKEN: "sesame\nopen" });
    await expect(refused).rejects.toThrow("SKILLBROKER_TOKEN is no token");
    await expect(refused).rejects.not.toThrow("sesame");
  });
});

test("a service on this machine gets no token: another program may listen there", async () => {
  for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
    expect(signerFor(new URL(`http://${host}:8787/`), { SKILLBROKER_TOKEN: "a.b.c" })).toBeUndefined();
  }
});

test.each([
  "http://skills.acme.test",
  "skills.acme.test",
  "https://user:pass@skills.acme.test",
  "https://skills.acme.test/?a=b",
  "file:///x",
])("%s is no endpoint", (endpoint) => {
  expect(() => connectToEndpoint(endpoint, { SKILLBROKER_TOKEN: "a.b.c" })).toThrow("--endpoint: ");
});
