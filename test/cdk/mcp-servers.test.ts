import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Token } from "aws-cdk-lib";
import { describe, expect, test } from "vitest";
import { type FoundServers, findServers, NO_SERVERS, type Reserved } from "../../cdk/mcp-servers.ts";
import type { Violation } from "../../functions/contract/fault.ts";
import { makeTempDirectory } from "./kit/temp-directory.ts";

const temp = makeTempDirectory();
let files = 0;

const NONE = { ...NO_SERVERS, declared: [], problems: [] };

/** What is found in a file of this text that the settings name. */
function readText(text: string | Uint8Array, reserved: Reserved = { reserved: [] }): FoundServers {
  files += 1;
  const path = join(temp, `mcp-${files}.json`);
  writeFileSync(path, text);
  return findServers({ path, name: "mcp.json", namedBy: "mcp" }, reserved);
}

const read = (mcpServers: unknown, reserved?: Reserved) => readText(JSON.stringify({ mcpServers }), reserved);

/** What is wrong with them; then none of them is deployed. */
function problemsOf(found: FoundServers): readonly Violation[] {
  expect(found.problems).not.toEqual([]);
  expect(found).toMatchObject(NO_SERVERS);
  return found.problems;
}
const told = (problems: readonly Violation[]) => problems.map(({ path, message }) => `${path}: ${message}`).join("\n");
const pathsOf = (mcpServers: unknown, reserved?: Reserved) =>
  problemsOf(read(mcpServers, reserved)).map(({ path }) => path);

/** A reference as it stands in the file. */
const ref = (store: string, name: string) => `\${${store}:${name}}`;
const withToken = (value: string) => ({ s: { url: "https://mcp.test/", headers: { Authorization: value } } });

describe("a file that is not there", () => {
  const path = join(temp, "missing.json");

  test("means no servers where the settings do not name it", () => {
    expect(findServers({ path, name: "mcp.json" }, { reserved: [] })).toEqual(NONE);
  });

  test("is told by the name that the settings give it, never by its whole path", () => {
    const problems = problemsOf(findServers({ path, name: "ops/mcp.json", namedBy: "mcp" }, { reserved: [] }));
    expect(told(problems)).toMatch(/^\/mcp: there is no ops\/mcp\.json, /);
    expect(told(problems)).not.toContain(temp);
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
  const { names, declared, json } = read({ github, files, acme });
  expect(names).toEqual(["acme", "github"]);
  expect(declared).toEqual(["acme", "files", "github"]);
  expect(json).toBe(JSON.stringify({ mcpServers: { acme, github } }));
});

test("a byte-order mark and an empty declaration are fine", () => {
  expect(readText('\ufeff{"mcpServers":{}}')).toEqual(NONE);
});

describe("servers given as a value", () => {
  const find = (mcpServers: unknown) => findServers({ value: { mcpServers } }, { reserved: ["builtin"] });

  test("are the same as in a file", () => {
    const servers = { acme: { url: "https://mcp.acme.test/", headers: { "X-Key": ref("ssm", "/mcp/t") } } };
    expect(find(servers)).toEqual(read(servers));
  });

  test("may have members that are undefined, as an object has where a file has none", () => {
    expect(find({ acme: { url: "https://mcp.acme.test/", headers: undefined } }).json).toBe(
      '{"mcpServers":{"acme":{"url":"https://mcp.acme.test/"}}}',
    );
  });

  test("are refused by the same paths", () => {
    const problems = problemsOf(find({ builtin: { url: "https://a.test/" }, b: { url: "http://b.test/" } }));
    expect(problems.map(({ path }) => path)).toEqual(["/mcpServers/b/url", "/mcpServers/builtin"]);
  });

  test("are refused when they are no object, or what JSON cannot write", () => {
    const round: Record<string, unknown> = {};
    round.self = round;
    for (const value of [["a"], "a", 1, round, 1n]) {
      expect(problemsOf(find(value)).map(({ path }) => path)).toEqual(["/mcpServers"]);
    }
  });

  test("cannot have an address that is known only while deploying, since they are beside the code", () => {
    const url = Token.asString({ Ref: "Server" });
    const problems = problemsOf(find({ acme: { url: `https://${url}/` } }));
    expect(new Set(problems.map(({ path }) => path))).toEqual(new Set(["/mcpServers/acme/url"]));
  });
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
    expect(read({ s: { ...s, disabled: true } })).toEqual({ ...NONE, declared: ["s"] });
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
    expect(problemsOf(read(withToken(ref(store, name))))).toEqual([
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
    const message = told(problemsOf(read(withToken(`Bearer ${ref("env", "TOKEN")}`))));
    expect(message).toContain(`${ref("env", "TOKEN")}: a deployed function has no such variable`);
    expect(message).toContain("secretsmanager:");
  });

  test("that are written out do not come back in a message", () => {
    const message = told(problemsOf(read(withToken(`Bearer hunter2 ${ref("env", "TOKEN")}`))));
    expect(message).not.toContain("hunter2");
  });
});

describe("a server is refused", () => {
  test("that is a command, with the three ways out", () => {
    const problems = problemsOf(read({ files: { command: "npx", args: ["files"] } }));
    expect(problems.map(({ path }) => path)).toEqual(["/mcpServers/files/command"]);
    for (const way of ['"disabled": true', '"mcp"', "skillbroker watch"]) expect(told(problems)).toContain(way);
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
    "https://0.0.0.0/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://169.254.169.254/",
    "https://10.0.0.1/",
    "https://192.168.1.1/",
  ])("that no function reaches: %s", (url) => {
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

test("a command in an app of one's own is told by the name of its prop", () => {
  const value = { mcpServers: { files: { command: "npx" } } };
  expect(told(findServers({ value }, { reserved: [] }).problems)).toContain('other servers by "mcpServers"');
});

test("a member that cannot be read hides nothing of the others", () => {
  const headers = { "no header": "a", "X-Env": ref("env", "TOKEN"), "X-Line": "a\nb", "X-Ssm": ref("ssm", "a b") };
  const mistakes = {
    s: { url: "https://10.0.0.1/", headers },
    u: { url: "http://u.test/", headers },
    c: { command: "a", args: 1 },
  };
  expect([...pathsOf(mistakes)].sort()).toEqual([
    "/mcpServers/c/args",
    "/mcpServers/c/command",
    "/mcpServers/s/headers/X-Env",
    "/mcpServers/s/headers/X-Line",
    "/mcpServers/s/headers/X-Ssm",
    "/mcpServers/s/headers/no header",
    "/mcpServers/s/url",
    "/mcpServers/u/headers/X-Env",
    "/mcpServers/u/headers/X-Line",
    "/mcpServers/u/headers/X-Ssm",
    "/mcpServers/u/headers/no header",
    "/mcpServers/u/url",
  ]);
});

describe("a secret in clear", () => {
  const warningsOf = (server: object) =>
    read({ s: { url: "https://mcp.test/", ...server } }).warnings.map(({ id, path }) => `${id} ${path}`);

  test.each(["Authorization", "Cookie", "X-Api-Key", "x-access-token"])("is warned of in the header %s", (name) => {
    const [header] = [`skillbroker:literal-credential /mcpServers/s/headers/${name}`];
    expect(warningsOf({ headers: { [name]: "Bearer sk-123", "X-Region": "eu" } })).toEqual([header]);
    expect(warningsOf({ headers: { [name]: `Bearer ${ref("ssm", "/mcp/t")}` } })).toEqual([]);
  });

  test("is warned of in the query of an address", () => {
    expect(warningsOf({ url: "https://mcp.test/?token=s3cr3t&page=1" })).toEqual([
      "skillbroker:literal-credential /mcpServers/s/url",
    ]);
    expect(warningsOf({ url: "https://mcp.test/?page=1&token=" })).toEqual([]);
  });

  test("does not come back in the warning, and is none of a server that is disabled", () => {
    const server = { url: "https://mcp.test/?key=s3cr3t", headers: { Authorization: "s3cr3t" } };
    expect(JSON.stringify(read({ s: server }).warnings)).not.toContain("s3cr3t");
    expect(read({ s: { ...server, disabled: true } }).warnings).toEqual([]);
  });
});

test("every mistake of every kind is told together", () => {
  const mistakes = {
    "-s": { url: "https://mcp.test/" },
    command: { command: "npx" },
    loop: { url: "http://localhost/" },
    shape: { url: "https://mcp.test/", header: {} },
    ...withToken(ref("env", "TOKEN")),
  };
  const expected = [
    "/mcpServers/-s",
    "/mcpServers/command/command",
    "/mcpServers/loop/url",
    "/mcpServers/s/headers/Authorization",
    "/mcpServers/shape/header",
  ];
  expect([...pathsOf(mistakes)].sort()).toEqual(expected);
  expect(read(mistakes).declared).toEqual(["-s", "command", "loop", "s", "shape"]);
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
    expect(told(problemsOf(readText(text)))).toMatch(/^\/mcp: mcp\.json(?:: | cannot be read: )/);
  });

  test("that is a directory, whether the settings name it or not", () => {
    const path = join(temp, "directory.json");
    mkdirSync(path);
    for (const namedBy of ["mcp", undefined]) {
      expect(told(problemsOf(findServers({ path, name: "mcp.json", namedBy }, { reserved: [] })))).not.toContain(temp);
    }
  });
});
