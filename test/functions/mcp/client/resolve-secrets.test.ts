import { describe, expect, test } from "vitest";
import { refuse, succeed } from "../../../../functions/contract/fault.ts";
import type { MCPServerConfig } from "../../../../functions/contract/mcp-server.ts";
import type { ReadSecret } from "../../../../functions/contract/ports.ts";
import {
  createRedactor,
  renewSecrets,
  resolveSecrets,
  type ServerSecrets,
} from "../../../../functions/mcp/client/resolve-secrets.ts";
import "../../../kit/to-fail.ts";

const overHttp = (headers: Readonly<Record<string, string>>): MCPServerConfig => ({
  name: "s1",
  transport: "http",
  url: "https://mcp.example.test",
  headers: new Map(Object.entries(headers)),
});
const overStdio = (env: Readonly<Record<string, string>>): MCPServerConfig => ({
  name: "s1",
  transport: "stdio",
  command: "mcp",
  args: [],
  env: new Map(Object.entries(env)),
});
/** As a configuration names a secret. */
const A = `\${${"env:A"}}`;
const B = `\${${"ssm:/b"}}`;

const reading =
  (secrets: Readonly<Record<string, string>>): ReadSecret =>
  async ({ name }) => {
    const value = secrets[name];
    return value === undefined ? refuse("SERVER_UNAVAILABLE", `the secret ${name} is not set`) : succeed(value);
  };

describe("the values of a server", () => {
  test("hold the secrets that they name, each read once", async () => {
    const asked: string[] = [];
    const readSecret: ReadSecret = async ({ store, name }) => {
      asked.push(`${store}:${name}`);
      return succeed(`<${name}>`);
    };
    const headers = { Authorization: `Bearer ${A}`, "x-two": `${A}/${B}`, plain: "text" };
    const resolved = await resolveSecrets(overHttp(headers), readSecret);
    expect(resolved.ok && Object.fromEntries(resolved.value.values)).toEqual({
      Authorization: "Bearer <A>",
      "x-two": "<A>/</b>",
      plain: "text",
    });
    expect(asked).toEqual(["env:A", "ssm:/b"]);
  });

  test("are variables of a server that is a process", async () => {
    const resolved = await resolveSecrets(overStdio({ TOKEN: A }), reading({ A: "line\nline" }));
    expect(resolved.ok && resolved.value.values.get("TOKEN")).toBe("line\nline");
  });

  test("cannot be had when a secret is missing, which is named", async () => {
    const resolved = await resolveSecrets(overHttp({ Authorization: `Bearer ${A}` }), reading({}));
    expect(resolved).toFail("SERVER_UNAVAILABLE");
    expect(resolved).toMatchObject({ fault: { message: "the secret A is not set" } });
  });

  test("cannot be had when reading a secret throws, and what was thrown is not told", async () => {
    const readSecret: ReadSecret = () => Promise.reject(new Error("token hunter-2"));
    const resolved = await resolveSecrets(overHttp({ Authorization: B }), readSecret);
    expect(resolved).toFail("SERVER_UNAVAILABLE");
    expect(resolved).toMatchObject({ fault: { message: `the secret ${B} cannot be read` } });
  });

  test.each([
    ["a line break inside a header", overHttp({ Authorization: `Bearer ${A}` }), "hunter-2\r\nx-evil: 1"],
    ["a letter that no header carries", overHttp({ Authorization: `Bearer ${A}` }), "hunter-2é"],
    ["a NUL in a variable", overStdio({ Authorization: A }), "hunter-2\0"],
  ])("are refused for %s without being quoted", async (_, config, secret) => {
    const resolved = await resolveSecrets(config, reading({ A: secret }));
    expect(resolved).toMatchObject({
      fault: { message: `"Authorization" holds a character that cannot be sent; look at ${A}` },
    });
  });

  test("may end in a line break, as files with secrets do", async () => {
    const resolved = await resolveSecrets(overHttp({ Authorization: `Bearer ${A}` }), reading({ A: "hunter-2\n" }));
    expect(resolved).toMatchObject({ ok: true });
    expect(resolved.ok && resolved.value.redact("got hunter-2\n, hunter-2")).toBe("got [secret], [secret]");
  });

  test("that name no secret are none: they are written in the configuration for all to see", async () => {
    const resolved = await resolveSecrets(overHttp({ "x-tenant": "acme-corporation" }), reading({}));
    expect(resolved.ok && resolved.value.redact("acme-corporation")).toBe("acme-corporation");
  });
});

describe("secrets that were refused", () => {
  const config = overHttp({ authorization: `Bearer ${A}`, "x-two": B });
  const resolved = async (secrets: Readonly<Record<string, string>>): Promise<ServerSecrets> => {
    const outcome = await resolveSecrets(config, reading(secrets));
    return outcome.ok ? outcome.value : expect.unreachable(outcome.fault.message);
  };
  const OLD = { A: "the-old-one", "/b": "the-second" };

  test("are wanted fresh, each, and other ones are to be sent", async () => {
    const asked: unknown[] = [];
    const readSecret: ReadSecret = async ({ name }, options) => {
      asked.push([name, options]);
      return succeed(name === "A" ? "the-new-one" : "the-second");
    };
    const renewed = await renewSecrets(config, readSecret, await resolved(OLD));
    expect(renewed?.values.get("authorization")).toBe("Bearer the-new-one");
    expect(asked).toEqual([
      ["A", { fresh: true }],
      ["/b", { fresh: true }],
    ]);
  });

  test("stay hidden beside the new ones, also where one is the beginning of the other", async () => {
    for (const [before, after] of [
      ["abcdefgh", "abcdefgh-ijkl"],
      ["abcdefgh-ijkl", "abcdefgh"],
    ]) {
      const old = await resolved({ ...OLD, A: before ?? "" });
      const renewed = await renewSecrets(config, reading({ ...OLD, A: after ?? "" }), old);
      expect(renewed?.redact(`${before} ${after} the-second`)).toBe("[secret] [secret] [secret]");
    }
  });

  test.each<[string, ReadSecret]>([
    ["they are the same", reading(OLD)],
    ["one cannot be had", reading({ A: "the-new-one" })],
    ["one cannot be sent", reading({ ...OLD, A: "the\nnew" })],
    ["nobody can be asked", () => Promise.reject(new Error("no"))],
  ])("are not replaced when %s", async (_, readSecret) => {
    expect(await renewSecrets(config, readSecret, await resolved(OLD))).toBeUndefined();
  });

  test("are not replaced when there are none", async () => {
    const plain = await resolveSecrets(overHttp({ a: "b" }), reading({}));
    const refused = plain.ok ? plain.value : expect.unreachable();
    expect(await renewSecrets(overHttp({ a: "b" }), reading({}), refused)).toBeUndefined();
  });
});

describe("redacting", () => {
  test("hides each text wherever it stands, the longer before the one inside it", () => {
    const redact = createRedactor(["abcdefgh", "xx abcdefgh yy"]);
    expect(redact("abcdefgh-xx abcdefgh yy-abcdefghabcdefgh")).toBe("[secret]-[secret]-[secret][secret]");
  });

  test("hides a text of eight characters, and none of seven", () => {
    expect(createRedactor(["abcdefgh", "stuvwxy"])("abcdefgh stuvwxy")).toBe("[secret] stuvwxy");
  });

  test("takes no text for a pattern", () => {
    expect(createRedactor(["a.*b$&(c)"])("a.*b$&(c) axxb")).toBe("[secret] axxb");
  });
});

test("a secret that was written down where a secret belongs is hidden as one that was named, and other headers are not", async () => {
  const config = overHttp({
    Authorization: "Bearer literal-secret-999",
    "X-Api-Key": "another-one",
    Accept: "application/json",
  });
  const resolved = await resolveSecrets(config, reading({}));
  const { redact } = resolved.ok ? resolved.value : expect.unreachable();
  expect(redact("bad header Bearer literal-secret-999")).toBe("bad header [secret]");
  expect(redact("got literal-secret-999 and another-one")).toBe("got [secret] and [secret]");
  expect(redact("wants application/json")).toBe("wants application/json");
});
