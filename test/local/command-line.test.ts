import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { PRODUCT_VERSION } from "../../functions/contract/product.ts";
import { runCli } from "../kit/command-line.ts";
import { startTestServer, temporaryDirectory, temporaryProject } from "../kit/local-service.ts";

const COMMANDS = ["tools", "describe", "run", "jobs", "verify", "pin", "validate", "serve"];

async function startFake(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

describe("help", () => {
  test.each([["--help"], ["-h"], ["help"]])("by %s names every command", async (word) => {
    const { code, out, err } = await runCli([word]);
    expect([code, err]).toEqual([0, ""]);
    for (const name of COMMANDS) expect(out).toMatch(new RegExp(`^ {2}${name}\\b`, "m"));
  });

  test.each(COMMANDS)("of %s shows its usage and every option, whatever else is said", async (name) => {
    const first = await runCli([name, "--help"]);
    expect([first.code, first.err]).toEqual([0, ""]);
    expect(first.out).toMatch(new RegExp(`^usage: skillbroker ${name} `));
    for (const option of ["--json", "--project <dir>", "--endpoint <url>", "-h, --help"])
      expect(first.out).toContain(option);
    expect(first.out).not.toMatch(/ {2}\[|undefined/);
    expect((await runCli(["help", name])).out).toBe(first.out);
    expect((await runCli([name, "-h", "--project", "/nowhere"])).out).toBe(first.out);
  });

  test("tells the version", async () => {
    expect(await runCli(["--version"])).toMatchObject({ code: 0, out: `${PRODUCT_VERSION}\n` });
  });
});

describe("words that are not understood", () => {
  test.each([
    [[], /command is missing/],
    [["nope"], /no command "nope"/],
    [["constructor"], /no command/],
    [["help", "nope"], /no command "nope"/],
    [["run"], /<ref> is missing/],
    [["run", "a@1", "b@1"], /too many words: "b@1"/],
    [["tools", "x"], /too many words/],
    [["tools", "--nope"], /'--nope'/],
    [["tools", "-z"], /'-z'/],
    [["run", "create_pdf@1", "--arguments"], /--arguments/],
    [["tools", "--json=yes"], /--json/],
    [["jobs", "--out", "."], /--out/],
    [["jobs", "x", "--limit", "1"], /--limit/],
    [["serve", "--port", "x"], /port/],
    [["serve", "--port", "65536"], /65535/],
    [["serve", "--port", "-1"], /port/],
    [["serve", "--endpoint", "http://127.0.0.1:1"], /--endpoint/],
    [["tools", "--endpoint", "127.0.0.1:8787"], /--endpoint/],
    [["tools", "--endpoint", "ftp://127.0.0.1"], /--endpoint/],
    [["tools", "--endpoint", ""], /--endpoint/],
    [["tools", "--endpoint", "http://user:pass@127.0.0.1"], /--endpoint/],
    [["tools", "--endpoint", "http://127.0.0.1/?x=1"], /--endpoint/],
    [["tools", "--endpoint", "http://api.example.com"], /https/],
    [["tools", "--endpoint", "https://api.example.com"], /AWS_REGION/],
  ])("end with 2 and one clear sentence on the error stream: %j", async (words, sentence) => {
    const { code, out, err } = await runCli(words);
    expect([code, out]).toEqual([2, ""]);
    expect(err.split("\n")[0]).toMatch(sentence);
    expect(err).not.toMatch(/\n {4}at /);
  });

  test.each([[["nope", "--json"]], [["run", "--json"]], [["tools", "--json", "--nope"]]])(
    "are JSON on standard output when asked: %j",
    async (words) => {
      const { code, out, err } = await runCli(words);
      expect([code, err]).toEqual([2, ""]);
      expect(JSON.parse(out)).toMatchObject({
        ok: false,
        error: { code: "REQUEST_INVALID", message: expect.stringMatching(/^[^\n]+$/) },
      });
    },
  );
});

describe("the project", () => {
  test("is the nearest cdk.json upwards", async () => {
    const root = temporaryProject({ tools: ["make_plan@1"] });
    mkdirSync(join(root, "a/b"), { recursive: true });
    const { code, out } = await runCli(["tools", "--json"], { cwd: join(root, "a/b") });
    expect(code).toBe(0);
    expect(JSON.parse(out).bundled).toMatchObject([{ ref: "make_plan@1" }]);
  });

  test("is the product's own where there is none", async () => {
    const { code, out } = await runCli(["describe", "--json"], { cwd: temporaryDirectory() });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ repositories: [{ name: "builtin", status: "loaded" }] });
  });

  test.each([
    ["no file", undefined, /there is no/],
    ["no JSON", "{", /not JSON/],
    ["an array", "[]", /object/],
    ["a context that is a list", '{"context":["local"]}', /context/],
    ["a key twice", '{"context":{"tools":[],"tools":["local"]}}', /duplicate/],
  ])("with %s is refused in one sentence", async (_, text, sentence) => {
    const root = temporaryDirectory();
    if (text !== undefined) writeFileSync(join(root, "cdk.json"), text);
    const { code, out, err } = await runCli(["tools", "--project", root]);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(sentence);
    expect(err).toMatch(/\(REQUEST_INVALID\)\n$/);
  });

  test("with mistakes is refused with all of them, for people and for programs", async () => {
    const root = temporaryProject({ tool: [], auth: "open", artifactDays: 0 });
    const { code, err } = await runCli(["tools"], { cwd: root });
    expect(code).toBe(1);
    for (const path of ["/tool", "/auth", "/artifactDays"]) expect(err).toContain(path);
    const { out } = await runCli(["tools", "--json"], { cwd: root });
    const { error } = JSON.parse(out);
    expect(error.errors.map(({ path }: { path: string }) => path).sort()).toEqual(["/artifactDays", "/auth", "/tool"]);
  });

  test("with a tool that is no ref says which", async () => {
    const { code, err } = await runCli(["tools"], { cwd: temporaryProject({ tools: ["create_pdf"] }) });
    expect([code, err.includes('"create_pdf"')]).toEqual([1, true]);
  });
});

describe("an endpoint", () => {
  test("is asked in place of this machine's own service", async () => {
    const { url } = await startTestServer();
    for (const endpoint of [url, `${url}/`, url.replace("127.0.0.1", "localhost")]) {
      const { code, out, err } = await runCli(["tools", "--json", "--endpoint", endpoint], {
        cwd: temporaryDirectory(),
      });
      expect([code, err]).toEqual([0, ""]);
      expect(JSON.parse(out).bundled).toHaveLength(2);
    }
  });

  test("that nobody serves is said so in one sentence", async () => {
    const { url, close } = await startTestServer();
    await close();
    const { code, out, err } = await runCli(["tools", "--endpoint", url]);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toBe(`no answer from ${new URL(url).host}: nothing listens there (SERVER_UNAVAILABLE)\n`);
    const asked = await runCli(["jobs", "--json", "--endpoint", url]);
    expect(JSON.parse(asked.out)).toMatchObject({ ok: false, error: { code: "SERVER_UNAVAILABLE" } });
  });

  test.each([
    ["cuts the connection", (_: unknown, response: { destroy(): void }) => response.destroy(), "SERVER_UNAVAILABLE"],
    ["is no JSON", answering(200, "<html>"), "SERVER_UNAVAILABLE"],
    ["is empty", answering(200, ""), "SERVER_UNAVAILABLE"],
    ["is of another shape", answering(200, '{"bundled":7}'), "SERVER_UNAVAILABLE"],
    ["redirects", answering(301, "{}"), "SERVER_UNAVAILABLE"],
    ["is the gateway's refusal", answering(403, '{"message":"Forbidden"}'), "ACCESS_DENIED"],
    ["is a gateway's failure", answering(502, '{"message":"Internal Server Error"}'), "SERVER_UNAVAILABLE"],
    ["is a problem of an unknown code", answering(418, '{"code":"TEAPOT","detail":"short and stout"}'), "DEFECT"],
    ["is a problem", answering(404, '{"code":"JOB_NOT_FOUND","detail":"you have no job"}'), "JOB_NOT_FOUND"],
  ] as const)("whose answer %s is a failure in one sentence", async (_, answer, code) => {
    const endpoint = await startFake(answer);
    for (const words of [["tools"], ["jobs"], ["jobs", "x"], ["describe", "builtin/x"]]) {
      const ran = await runCli([...words, "--endpoint", endpoint]);
      expect([words, ran.code, ran.out]).toEqual([words, 1, ""]);
      if (words[0] !== "describe") expect(ran.err).toContain(`(${code})`);
      expect(ran.err).not.toMatch(/\n {4}at /);
    }
  });

  test("cannot move the cursor or turn the text around", async () => {
    const detail = "no\u001b[2J\u202e\u0007 job";
    const endpoint = await startFake(answering(404, JSON.stringify({ code: "JOB_NOT_FOUND", detail })));
    expect((await runCli(["jobs", "x", "--endpoint", endpoint])).err).toBe("no[2J job (JOB_NOT_FOUND)\n");
    const { out } = await runCli(["jobs", "x", "--json", "--endpoint", endpoint]);
    expect(out).not.toMatch(/[\u001b\u0007\u202e]/);
    expect(JSON.parse(out).error.message).toBe(detail);
  });
});

describe("what was not foreseen", () => {
  const broken = () => {
    const root = temporaryProject();
    writeFileSync(join(root, ".skillbroker"), "a file where the data directory should be");
    return root;
  };

  test("is one sentence and exit code 1, never a stack", async () => {
    const { code, out, err } = await runCli(["tools"], { cwd: broken() });
    expect([code, out]).toEqual([1, ""]);
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(err).toMatch(/^skillbroker failed: .*SKILLBROKER_DEBUG=1/);
  });

  test("is JSON when asked", async () => {
    const { code, out, err } = await runCli(["tools", "--json"], { cwd: broken() });
    expect([code, err]).toEqual([1, ""]);
    expect(JSON.parse(out)).toMatchObject({ ok: false, error: { code: "DEFECT" } });
  });

  test("shows its stack to whoever debugs", async () => {
    const { code, err } = await runCli(["tools"], { cwd: broken(), env: { SKILLBROKER_DEBUG: "1" } });
    expect(code).toBe(1);
    expect(err).toMatch(/\n {4}at /);
  });
});

function answering(status: number, body: string): RequestListener {
  return (_, response) => {
    response.writeHead(status, { location: "/elsewhere", "content-type": "application/json" }).end(body);
  };
}
