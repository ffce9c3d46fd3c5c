import { describe, expect, test } from "vitest";
import {
  digestOfConfig,
  nameOfSecret,
  parseMcpServers,
  secretsIn,
  withSecrets,
} from "../../../functions/contract/mcp-server.ts";
import "../../kit/to-fail.ts";

const parse = (mcpServers: unknown, reserved: readonly string[] = []) => parseMcpServers({ mcpServers }, { reserved });
const HTTP = { url: "https://s.example/mcp" };

function parsed(entry: unknown) {
  const servers = parse({ s1: entry });
  return servers.ok ? servers.value[0] : expect.unreachable(servers.fault.message);
}

/** Paths and messages of what is wrong. */
function wrong(mcpServers: unknown, reserved?: readonly string[]): readonly string[] {
  const servers = parse(mcpServers, reserved);
  return servers.ok ? [] : servers.fault.violations.map(({ path, message }) => `${path} ${message}`);
}

describe("the servers of mcp.json", () => {
  test("are read in the usual shape, in the order of their names, without those that are disabled", () => {
    const servers = parse({
      b: { type: "http", ...HTTP, headers: { Authorization: "Bearer x" } },
      a: { command: "npx", args: ["-y", "notes"], env: { TOKEN: "${env:TOKEN}" }, cwd: "/tmp" },
      c: { ...HTTP, disabled: true },
    });
    expect(servers).toEqual({
      ok: true,
      value: [
        {
          name: "a",
          transport: "stdio",
          command: "npx",
          args: ["-y", "notes"],
          env: new Map([["TOKEN", "${env:TOKEN}"]]),
          cwd: "/tmp",
        },
        { name: "b", transport: "http", url: HTTP.url, headers: new Map([["Authorization", "Bearer x"]]) },
      ],
    });
  });

  test.each([[undefined], [null], [[]], ["x"], [1]])("are refused as %j", (value) => {
    expect(parse(value)).toFail("REQUEST_INVALID");
  });

  test("may be none", () => {
    expect(parse({})).toEqual({ ok: true, value: [] });
  });

  test.each([
    ["a/b", "/mcpServers/a~1b"],
    ["", "/mcpServers/"],
    [".hidden", "/mcpServers/.hidden"],
    ["-x", "/mcpServers/-x"],
    ["ünïcode", "/mcpServers/ünïcode"],
    ["a b", "/mcpServers/a b"],
    ["x".repeat(65), "/mcpServers/xxx"],
  ])("have names that refs and keys can bear, not %j", (name, path) => {
    expect(wrong({ [name]: HTTP })[0]).toContain(path);
  });

  test.each(["a", "x".repeat(64), "evil__foo", "a.b_c-d", "constructor", "__proto__x", "0"])(
    "may be called %s",
    (name) => {
      if (/^_/.test(name)) expect(wrong({ [name]: HTTP })).toHaveLength(1);
      else expect(wrong({ [name]: HTTP })).toEqual([]);
    },
  );

  test("bear no name that would pass for the operator's own, in whatever case", () => {
    for (const name of ["builtin", "BuiltIn", "acme"]) {
      expect(wrong({ [name]: HTTP }, ["builtin", "acme"])[0]).toMatch(/the name is taken/);
    }
  });

  test("that differ by case only are refused: people and file systems take them for one", () => {
    expect(wrong({ Git: HTTP, git: HTTP })).toHaveLength(1);
  });

  test.each([
    ["an unknown field, such as an approval in somebody else's words", { ...HTTP, autoApprove: ["x"] }],
    ["both a command and an address", { ...HTTP, command: "x" }],
    ["neither", {}],
    ["another transport", { ...HTTP, type: "sse" }],
    ["an address that is none", { url: "s.example" }],
    ["another scheme", { url: "ftp://s.example" }],
    ["a token over plain HTTP", { url: "http://s.example/mcp" }],
    ["a password in the address", { url: "https://u:p@s.example/mcp" }],
    ["a header's name that is none", { ...HTTP, headers: { "a b": "x" } }],
    ["a line break in a header", { ...HTTP, headers: { a: "x\r\ny: z" } }],
    ["a misspelt secret", { ...HTTP, headers: { a: "${ENV:X}" } }],
    ["a secret without a name", { ...HTTP, headers: { a: "${env:}" } }],
    ["a secret that is not closed", { ...HTTP, headers: { a: "Bearer ${env:X" } }],
    ["a variable whose name is none", { command: "x", env: { "A-B": "x" } }],
    ["no command", { command: "" }],
  ])("are refused with %s", (_, entry) => {
    expect(wrong({ s1: entry })[0]).toMatch(/^\/mcpServers\/s1/);
  });

  test.each([
    ["/url", { url: "https://s.example/mcp?key=${env:KEY}" }],
    ["/url", { url: "https://${env:HOST}/mcp" }],
    ["/args/1", { command: "x", args: ["--token", "${env:TOKEN}"] }],
    ["/args/0", { command: "x", args: ["a ${ssm:/b"] }],
    ["/command", { command: "${env:HOME}/bin/x" }],
    ["/cwd", { command: "x", cwd: "${HOME}" }],
  ])("name no secret in %s, where it would be sent as it stands", (path, entry) => {
    expect(wrong({ s1: entry })).toContain(
      `/mcpServers/s1${path} nothing is put in place of "\${" here; a secret goes into headers or env`,
    );
  });

  test("may hold a dollar and a brace that begin no name", () => {
    expect(
      wrong({ a: { command: "x", args: ["$HOME", "{a}", "$ {b}"] }, b: { url: "https://s.example/$/{a}" } }),
    ).toEqual([]);
  });

  test.each([
    ["a command", 1_024, (text: string) => ({ command: text })],
    ["a directory", 1_024, (text: string) => ({ command: "x", cwd: text })],
    ["an argument", 8_192, (text: string) => ({ command: "x", args: [text] })],
  ])("have %s of at most %i characters", (_, most, entryOf) => {
    expect(wrong({ s1: entryOf("x".repeat(most)) })).toEqual([]);
    expect(wrong({ s1: entryOf("x".repeat(most + 1)) })).toHaveLength(1);
  });

  test("may be on this machine without TLS", () => {
    for (const host of ["127.0.0.1:1", "localhost:1", "[::1]:1"]) {
      expect(parsed({ url: `http://${host}/mcp` })).toMatchObject({ transport: "http" });
    }
  });

  test("tell every mistake at once, each by its path, and in the message", () => {
    const servers = parse({ "a/b": HTTP, c: { url: "x", headers: { a: "\n" } } });
    expect(servers.ok ? "" : servers.fault.message.split("\n")).toHaveLength(4);
  });
});

describe("secrets", () => {
  test("are named in a text, and put into it by whoever has them", () => {
    const text = "a ${env:A} b ${ssm:/x/y} c ${secretsmanager:arn:aws:s:1}";
    expect(secretsIn(text)).toEqual([
      { store: "env", name: "A" },
      { store: "ssm", name: "/x/y" },
      { store: "secretsmanager", name: "arn:aws:s:1" },
    ]);
    expect(withSecrets(text, ({ name }) => `$&${name.length}`)).toBe("a $&1 b $&4 c $&11");
    expect(secretsIn("$env:A {env:A} ${other:A}")).toEqual([]);
  });

  test("are called what they are written as", () => {
    for (const text of ["${env:A}", "${ssm:/x/y}", "${secretsmanager:arn:aws:s:1}"]) {
      expect(secretsIn(text).map(nameOfSecret)).toEqual([text]);
    }
  });
});

describe("the digest of a configuration", () => {
  test("is another one for another address, credential or command, and the same for another name", () => {
    const digests = [
      { url: "https://a.example" },
      { url: "https://b.example" },
      { url: "https://a.example", headers: { a: "${env:A}" } },
      { url: "https://a.example", headers: { a: "${env:B}" } },
      { command: "a" },
      { command: "a", args: ["b"] },
      { command: "a", env: { A: "b" } },
    ].map((entry) => digestOfConfig(parsed(entry) ?? expect.unreachable()));
    expect(new Set(digests).size).toBe(digests.length);
    const twice = parse({ a: HTTP, b: HTTP });
    expect(new Set((twice.ok ? twice.value : []).map(digestOfConfig)).size).toBe(1);
  });
});
