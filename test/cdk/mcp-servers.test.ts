import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type DeclaredServers, NO_SERVERS, readServers, type ServersFile } from "../../cdk/mcp-servers.ts";
import { Fault } from "../../functions/contract/fault.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";
import "../kit/to-fail.ts";

const temp = makeTempDirectory();
let files = 0;

/** Reads a file of this text, as one that the settings name. */
function readText(text: string | Uint8Array, options: Partial<ServersFile> = {}): DeclaredServers {
  files += 1;
  const path = join(temp, `mcp-${files}.json`);
  writeFileSync(path, text);
  return readServers({ path, name: "mcp.json", required: true, reserved: [], ...options });
}

const read = (mcpServers: unknown, options: Partial<ServersFile> = {}) =>
  readText(JSON.stringify({ mcpServers }), options);

function faultOf(act: () => unknown): Fault {
  try {
    act();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error("the servers were accepted");
}

const pathsOf = (mcpServers: unknown, options: Partial<ServersFile> = {}) =>
  faultOf(() => read(mcpServers, options)).violations.map(({ path }) => path);

/** A reference as it stands in the file. */
const ref = (store: string, name: string) => `\${${store}:${name}}`;
const withToken = (value: string) => ({ s: { url: "https://mcp.test/", headers: { Authorization: value } } });

describe("a file that is not there", () => {
  const path = join(temp, "missing.json");

  test("means no servers where the settings do not name it", () => {
    expect(readServers({ path, name: "mcp.json", required: false, reserved: [] })).toEqual(NO_SERVERS);
  });

  test("is told by the name that the settings give it, never by its whole path", () => {
    const { code, message } = faultOf(() => readServers({ path, name: "ops/mcp.json", required: true, reserved: [] }));
    expect(code).toBe("REQUEST_INVALID");
    expect(message).toContain("no ops/mcp.json");
    expect(message).not.toContain(temp);
  });
});

test("servers are compiled in as they were declared, in the order of their names, without those that are disabled", () => {
  const github = {
    type: "http",
    url: "https://mcp.github.test/",
    headers: { Authorization: `Bearer ${ref("ssm", "/mcp/t")}` },
  };
  const acme = { url: "https://mcp.acme.test/" };
  const files = { command: "npx", args: ["files"], env: { TOKEN: "plain" }, disabled: true };
  const { names, json } = read({ github, files, acme });
  expect(names).toEqual(["acme", "github"]);
  expect(json).toBe(JSON.stringify({ mcpServers: { acme, github } }));
});

test("a byte-order mark and an empty declaration are fine", () => {
  expect(readText('\ufeff{"mcpServers":{}}')).toEqual(NO_SERVERS);
});

describe("secrets", () => {
  test("are each named once, wherever and however often the servers name them", () => {
    const headers = {
      Authorization: `Bearer ${ref("secretsmanager", "mcp/github")} ${ref("ssm", "/mcp/b")}`,
      "X-Key": ref("secretsmanager", "mcp/github"),
      "X-Region": "eu",
    };
    const { secrets } = read({ a: { url: "https://a.test/", headers }, b: { url: "https://b.test/", headers } });
    expect(secrets).toEqual([
      { store: "secretsmanager", name: "mcp/github" },
      { store: "ssm", name: "/mcp/b" },
    ]);
  });

  test("of a server that is disabled are not asked for", () => {
    const { s } = withToken(ref("ssm", "/mcp/t"));
    expect(read({ s: { ...s, disabled: true } })).toEqual(NO_SERVERS);
  });

  const ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mcp/github-a1B2c3";

  test.each([
    ["secretsmanager", "token"],
    ["secretsmanager", "a/b_c+d=e.f@g-h!i"],
    ["secretsmanager", ARN],
    ["secretsmanager", ARN.replace("arn:aws", "arn:aws-us-gov")],
    ["ssm", "token"],
    ["ssm", "/mcp/git.hub/to_ken-1"],
  ])("are taken from %s by the name %s", (store, name) => {
    expect(read(withToken(ref(store, name))).secrets).toEqual([{ store, name }]);
  });

  test("are opened in every version, whichever of them a server asks for", () => {
    const headers = { "X-0": ref("ssm", "/mcp/t:3"), "X-1": ref("ssm", "/mcp/t") };
    expect(read({ s: { url: "https://mcp.test/", headers } }).secrets).toEqual([{ store: "ssm", name: "/mcp/t" }]);
  });

  test.each([
    ["secretsmanager", "mcp/all#github"],
    ["secretsmanager", `${ARN}#github`],
    ["secretsmanager", "#field"],
    ["secretsmanager", "token#"],
    ["secretsmanager", "*#field"],
    ["ssm", "/mcp/token#field"],
  ])("are refused from %s by the name %s: no field can be named, only the whole is read", (store, name) => {
    const { violations } = faultOf(() => read(withToken(ref(store, name))));
    expect(violations).toEqual([
      {
        path: "/mcpServers/s/headers/Authorization",
        message: `${ref(store, name)}: a field of a secret cannot be named; keep each value in a secret of its own`,
      },
    ]);
  });

  test.each([
    ["secretsmanager", "*"],
    ["secretsmanager", "mcp/*"],
    ["secretsmanager", "mcp/token-??????"],
    ["secretsmanager", ARN.replace("123456789012", "*")],
    ["secretsmanager", ARN.replace("mcp/github", "*")],
    ["secretsmanager", ARN.replace("-a1B2c3", "")],
    ["secretsmanager", "arn:aws:s3:::bucket/key-a1B2c3"],
    ["ssm", "*"],
    ["ssm", "/mcp/token:*"],
    ["ssm", "/mcp/*"],
    ["ssm", "/mcp//token"],
    ["ssm", "/mcp/token/"],
    ["ssm", "arn:aws:ssm:eu-central-1:123456789012:parameter/mcp/token"],
    ["env", "TOKEN"],
  ])("are refused from %s by the name %s, which would open more than one or nothing", (store, name) => {
    expect(pathsOf(withToken(ref(store, name)))).toEqual(["/mcpServers/s/headers/Authorization"]);
  });

  test("from the environment are refused with what to do instead", () => {
    const { message } = faultOf(() => read(withToken(`Bearer ${ref("env", "TOKEN")}`)));
    expect(message).toContain(`${ref("env", "TOKEN")}: a deployed function has no such variable`);
    expect(message).toContain("secretsmanager:");
  });

  test("that are written out do not come back in a message", () => {
    const { message } = faultOf(() => read(withToken(`Bearer hunter2 ${ref("env", "TOKEN")}`)));
    expect(message).not.toContain("hunter2");
  });
});

describe("a server is refused", () => {
  test("that is a command, with the three ways out", () => {
    const { violations, message } = faultOf(() => read({ files: { command: "npx", args: ["files"] } }));
    expect(violations.map(({ path }) => path)).toEqual(["/mcpServers/files/command"]);
    for (const way of ['"disabled": true', '"mcp"', "skillbroker watch"]) expect(message).toContain(way);
  });

  test.each([
    "http://127.0.0.1:8080/mcp",
    "http://localhost/mcp",
    "http://[::1]:9/mcp",
    "https://localhost/mcp",
    "https://mcp.localhost/",
    "https://127.0.0.1/mcp",
    "https://127.8.8.8/mcp",
    "https://0x7f.1/mcp",
    "https://[0:0::1]/mcp",
    "https://LOCALHOST./mcp",
  ])("that is on the machine itself: %s", (url) => {
    expect(pathsOf({ s: { url } })).toEqual(["/mcpServers/s/url"]);
  });

  test.each(["https://localhost.acme.test/", "https://128.0.0.1/", "https://127.acme.test/"])("but not %s", (url) => {
    expect(read({ s: { url } }).names).toEqual(["s"]);
  });

  test("that takes a reserved name, whatever the case", () => {
    const url = "https://mcp.test/";
    expect(pathsOf({ Builtin: { url }, acme: { url } }, { reserved: ["builtin", "local", "acme"] })).toEqual([
      "/mcpServers/Builtin",
      "/mcpServers/acme",
    ]);
  });
});

test("every mistake of every kind is told together, in the message too", () => {
  const mistakes = {
    "-s": { url: "https://mcp.test/" },
    command: { command: "npx" },
    loop: { url: "http://localhost/" },
    shape: { url: "https://mcp.test/", header: {} },
    ...withToken(ref("env", "TOKEN")),
  };
  const { code, message, violations } = faultOf(() => read(mistakes));
  expect(code).toBe("REQUEST_INVALID");
  const expected = [
    "/mcpServers/-s",
    "/mcpServers/command/command",
    "/mcpServers/loop/url",
    "/mcpServers/s/headers/Authorization",
    "/mcpServers/shape/header",
  ];
  expect(violations.map(({ path }) => path).sort()).toEqual(expected);
  for (const path of expected) expect(message).toContain(`\n  ${path}: `);
  expect(message.match(/\n/g)).toHaveLength(expected.length);
});

describe("a file is refused", () => {
  test.each([
    ["empty", ""],
    ["not JSON", "{"],
    ["a list", "[]"],
    ["of another shape", '{"servers":{}}'],
    ["with a word beside the servers", '{"mcpServers":{},"inputs":[]}'],
    ["with a server twice", '{"mcpServers":{"a":{"url":"https://a.test/"},"a":{"url":"https://b.test/"}}}'],
    ["that reaches for a prototype", '{"mcpServers":{"__proto__":{"url":"https://a.test/"}}}'],
    ["that is deep", `{"mcpServers":{"a":${"[".repeat(20)}${"]".repeat(20)}}}`],
    ["that is not UTF-8", Buffer.from([0x7b, 0xff, 0x7d])],
  ])("that is %s", (_, text) => {
    const { code, message } = faultOf(() => readText(text));
    expect(code).toBe("REQUEST_INVALID");
    expect(message).toContain("mcp.json");
  });

  test("that is a directory, whether the settings name it or not", () => {
    const path = join(temp, "directory.json");
    mkdirSync(path);
    for (const required of [true, false]) {
      expect(faultOf(() => readServers({ path, name: "mcp.json", required, reserved: [] })).message).not.toContain(
        temp,
      );
    }
  });
});
