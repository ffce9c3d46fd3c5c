import { Agent, request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { JobReport } from "../../functions/contract/job.ts";
import { MAX_HTTP_BODY_BYTES } from "../../functions/contract/product.ts";
import { readProject } from "../../local/project.ts";
import { startLocalServer } from "../../local/server.ts";
import { realTimer } from "../../local/timer.ts";
import { startTestServer, temporaryProject } from "../kit/local-service.ts";
import { connectRaw, exchangeRaw } from "../kit/raw-http.ts";

const JOB = JSON.stringify({ calls: [{ tool: "create_pdf@1", arguments: { title: "Minutes", body: "We met." } }] });
const JSON_TYPE = { "content-type": "application/json" };

function problemIn(text: string): { status: number; code: unknown; detail: unknown } {
  const { status, code, detail } = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4));
  expect(text).toMatch(/^HTTP\/1\.1 \d{3} /);
  expect(text).toMatch(/\r\ncontent-type: application\/problem\+json\r\n/i);
  expect(text).toMatch(/\r\nx-request-id: [0-9a-f-]{36}\r\n/i);
  return { status, code, detail };
}

async function jsonFrom(response: Response): Promise<Readonly<Record<string, unknown>>> {
  return Object.fromEntries(Object.entries((await response.json()) ?? {}));
}

async function expectAlive(url: string): Promise<void> {
  expect((await fetch(`${url}/v1/health`)).status).toBe(200);
}

async function postJob(url: string): Promise<JobReport> {
  const response = await fetch(`${url}/v1/jobs`, { method: "POST", headers: JSON_TYPE, body: JOB });
  expect(response.status).toBe(200);
  return JobReport.parse(await response.json());
}

describe("the service over sockets", () => {
  test("runs a job and gives its file away by a link that says its name and type", async () => {
    const { url } = await startTestServer();
    const [artifact] = (await postJob(url)).artifacts;
    const file = await fetch(artifact?.url ?? "");
    expect(Object.fromEntries(file.headers)).toMatchObject({
      "content-type": "application/pdf",
      "content-disposition": expect.stringMatching(/^attachment; filename="Minutes\.pdf"/),
      "x-content-type-options": "nosniff",
      "x-request-id": expect.stringMatching(/\S/),
    });
    expect(
      Buffer.from(await file.arrayBuffer())
        .subarray(0, 5)
        .toString(),
    ).toBe("%PDF-");
  });

  test("follows the redirect of an artifact to its file", async () => {
    const { url } = await startTestServer();
    const { job_id } = await postJob(url);
    const file = await fetch(`${url}/v1/jobs/${job_id}/artifacts/a1`);
    expect([file.redirected, file.headers.get("content-type")]).toEqual([true, "application/pdf"]);
  });

  test("answers many requests at once, each with its own job", async () => {
    const { url } = await startTestServer();
    const reports = await Promise.all(Array.from({ length: 16 }, () => postJob(url)));
    expect(new Set(reports.map(({ job_id }) => job_id)).size).toBe(16);
  });

  test.each([
    "/",
    "/v1/tools/",
    "//v1/tools",
    "/v1/%",
    "/%2e%2e/v1/tools",
    "/v1/../v1/tools",
    "/v1\\tools",
    `/${"a".repeat(10_000)}`,
  ])("finds nothing at %s", async (path) => {
    const { url } = await startTestServer();
    const text = await exchangeRaw(
      url,
      `GET ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nConnection: close\r\n\r\n`,
    );
    expect(problemIn(text)).toMatchObject({ status: 404, code: "ROUTE_NOT_FOUND" });
  });

  test("answers HEAD without a body and takes the next request on the same connection", async () => {
    const { url } = await startTestServer();
    const host = new URL(url).host;
    const text = await exchangeRaw(
      url,
      `HEAD /v1/tools HTTP/1.1\r\nHost: ${host}\r\n\r\nGET /v1/health HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    const [head = "", second = ""] = text.split(/(?=HTTP\/1\.1 )/);
    expect(head).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/);
    expect(second).toMatch(/"status":"ok"/);
  });

  test("refuses invalid UTF-8 byte for byte", async () => {
    const { url } = await startTestServer();
    const body = Buffer.from([0x22, 0xff, 0x22]);
    const response = await fetch(`${url}/v1/jobs`, { method: "POST", headers: JSON_TYPE, body });
    expect(response.status).toBe(400);
    expect((await jsonFrom(response)).detail).toContain("UTF-8");
  });
});

describe("links", () => {
  test("that are over are gone, with a problem document", async () => {
    const { url, clock } = await startTestServer();
    const [artifact] = (await postJob(url)).artifacts;
    const link = artifact?.url ?? "";
    clock.advance(Date.parse(artifact?.expires_at ?? "") - clock.now() - 1);
    expect((await fetch(link)).status).toBe(200);
    clock.advance(1);
    const response = await fetch(link);
    expect([response.status, (await jsonFrom(response)).code]).toEqual([410, "ARTIFACT_EXPIRED"]);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
  });

  test("that were changed in any part are refused", async () => {
    const { url } = await startTestServer();
    const link = (await postJob(url)).artifacts[0]?.url ?? "";
    const changes = [
      link.replace("Minutes.pdf", "Other.pdf"),
      link.replace(/expires=(\d)/, "expires=9$1"),
      link.replace("application%2Fpdf", "text%2Fhtml"),
      link.replace(/signature=\w{4}/, "signature=0000"),
      link.replace("artifacts/", "jobs/"),
      link.slice(0, link.indexOf("?")),
      `${url}/files/`,
      `${url}/files/..%2f..%2fetc/passwd`,
    ];
    for (const changed of changes) {
      const response = await fetch(changed);
      expect([changed, response.status, (await jsonFrom(response)).code]).toEqual([changed, 403, "ACCESS_DENIED"]);
    }
  });

  test("of a removed file lead to nothing", async () => {
    const { url } = await startTestServer();
    const report = await postJob(url);
    const removed = await fetch(`${url}/v1/jobs/${report.job_id}/artifacts/a1`, { method: "DELETE" });
    expect(removed.status).toBe(204);
    const response = await fetch(report.artifacts[0]?.url ?? "");
    expect([response.status, (await jsonFrom(response)).code]).toEqual([404, "ARTIFACT_NOT_FOUND"]);
  });

  test("take GET and HEAD only", async () => {
    const { url } = await startTestServer();
    const link = (await postJob(url)).artifacts[0]?.url ?? "";
    const response = await fetch(link, { method: "POST", body: "x" });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    const head = await fetch(link, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });

  test("may be clicked on any page", async () => {
    const { url } = await startTestServer();
    const link = new URL((await postJob(url)).artifacts[0]?.url ?? "");
    const headers = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nConnection: close";
    const text = await exchangeRaw(
      url,
      `GET ${link.pathname}${link.search} HTTP/1.1\r\nHost: ${link.host}\r\n${headers}\r\n\r\n`,
    );
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("who may ask", () => {
  async function ask(target: string, headers: readonly string[]) {
    const { url } = await startTestServer();
    const { host } = new URL(url);
    const lines = headers.map((line) => line.replace("{host}", host).replace("{port}", new URL(url).port));
    return exchangeRaw(
      url,
      [`GET ${target.replace("{host}", host)} HTTP/1.1`, ...lines, "Connection: close", "", ""].join("\r\n"),
    );
  }

  test.each([
    ["a rebound name", "/v1/health", ["Host: evil.example"]],
    ["a rebound name with our port", "/v1/health", ["Host: evil.example:{port}"]],
    ["our name without the port", "/v1/health", ["Host: 127.0.0.1"]],
    ["another port", "/v1/health", ["Host: 127.0.0.1:1"]],
    ["a name that begins like ours", "/v1/health", ["Host: localhost.evil.example:{port}"]],
    ["another origin", "/v1/health", ["Host: {host}", "Origin: https://evil.example"]],
    ["an opaque origin", "/v1/health", ["Host: {host}", "Origin: null"]],
    ["our host over https", "/v1/health", ["Host: {host}", "Origin: https://{host}"]],
    ["another port of this machine", "/v1/health", ["Host: {host}", "Sec-Fetch-Site: same-site"]],
    ["another site", "/v1/health", ["Host: {host}", "Sec-Fetch-Site: cross-site"]],
    ["a foreign absolute target", "http://evil.example/v1/health", ["Host: {host}"]],
    ["a foreign host behind our target", "http://{host}/v1/health", ["Host: evil.example"]],
    ["a link under a rebound name", "/files/x?signature=x", ["Host: evil.example"]],
  ])("%s may not", async (_, target, headers) => {
    expect(problemIn(await ask(target, headers))).toMatchObject({ status: 403, code: "ACCESS_DENIED" });
  });

  test.each([
    ["no Host", "/v1/health", []],
    ["two Hosts", "/v1/health", ["Host: {host}", "Host: evil.example"]],
    ["an asterisk", "*", ["Host: {host}"]],
    ["https in the target", "https://{host}/v1/health", ["Host: {host}"]],
    ["a user in the target", "http:/v1/health", ["Host: {host}"]],
  ])("a request with %s is none", async (_, target, headers) => {
    expect(problemIn(await ask(target, headers))).toMatchObject({ status: 400, code: "REQUEST_INVALID" });
  });

  test.each([
    ["curl", "/v1/health", ["Host: {host}"]],
    ["a browser's address bar", "/v1/health", ["Host: {host}", "Sec-Fetch-Site: none"]],
    ["our own page", "/v1/health", ["Host: {host}", "Origin: http://{host}", "Sec-Fetch-Site: same-origin"]],
    ["our other name", "/v1/health", ["Host: LocalHost:{port}"]],
    ["a proxy's absolute target", "http://{host}/v1/health?x=1", ["Host: {host}"]],
  ])("%s may", async (_, target, headers) => {
    expect(await ask(target, headers)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("nobody from outside: only loopback is bound", async () => {
    const { url } = await startTestServer();
    expect(new URL(url).hostname).toBe("127.0.0.1");
  });
});

describe("clients that misbehave", () => {
  test.each([
    ["no HTTP", "hello\r\n\r\n"],
    ["a bad method", "G@T / HTTP/1.1\r\n\r\n"],
    ["a bad header", "GET / HTTP/1.1\r\nHost : x\r\n\r\n"],
    ["a bad length", "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"],
    ["two lengths", "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"],
    [
      "length and chunks",
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ["headers without end", `GET / HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(20_000)}\r\n\r\n`],
  ])("get a problem document for %s, and the connection is closed", async (_, text) => {
    const { url } = await startTestServer();
    expect(problemIn(await exchangeRaw(url, text))).toMatchObject({ status: 400, code: "REQUEST_INVALID" });
    await expectAlive(url);
  });

  test.each([
    ["headers", "GET /v1/health HTTP/1.1\r\nHost: "],
    [
      "a body",
      "POST /v1/jobs HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    ],
  ])("are cut when %s do not arrive in time", async (_, text) => {
    const { url } = await startTestServer({ requestTimeoutMs: 50 });
    expect(problemIn(await exchangeRaw(url, text.replace("{host}", new URL(url).host)))).toMatchObject({
      code: "REQUEST_INVALID",
    });
    await expectAlive(url);
  });

  test("may go away in the middle of a body", async () => {
    const server = await startTestServer();
    const connection = await connectRaw(server.url);
    const { host } = new URL(server.url);
    connection.socket.write(
      `POST /v1/jobs HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n`,
    );
    await connection.until(/100 Continue/);
    connection.socket.resetAndDestroy();
    await expectAlive(server.url);
    await server.close();
    expect(server.logged.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("may go away in the middle of an answer", async () => {
    const server = await startTestServer();
    const { host } = new URL(server.url);
    for (let count = 0; count < 20; count += 1) {
      const connection = await connectRaw(server.url);
      connection.socket.write(`GET /v1/tools HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(20));
      await connection.until(/HTTP\/1\.1 200/);
      connection.socket.resetAndDestroy();
    }
    await expectAlive(server.url);
    await server.close();
    expect(server.logged.filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("bodies beyond the limit", () => {
  const TOO_LARGE = { status: 413, code: "PAYLOAD_TOO_LARGE" };
  const headersOf = (url: string, more: string) =>
    `POST /v1/jobs HTTP/1.1\r\nHost: ${new URL(url).host}\r\nContent-Type: application/json\r\n${more}\r\n\r\n`;

  test("are refused by their declared length, before a byte is sent", async () => {
    const { url } = await startTestServer();
    for (const expectation of ["", "\r\nExpect: 100-continue"]) {
      const connection = await connectRaw(url);
      connection.socket.write(headersOf(url, `Content-Length: ${MAX_HTTP_BODY_BYTES + 1}${expectation}`));
      const text = await connection.until(/"request_id":"[^"]+"\}/);
      expect(problemIn(text)).toMatchObject(TOO_LARGE);
      connection.socket.destroy();
    }
  });

  test("are taken at the limit", async () => {
    const { url } = await startTestServer();
    const body = JOB.padEnd(MAX_HTTP_BODY_BYTES, " ");
    const response = await fetch(`${url}/v1/jobs`, { method: "POST", headers: JSON_TYPE, body });
    expect(response.status).toBe(200);
  });

  test("of no declared length are refused while they come, and reading stops", async () => {
    const { url } = await startTestServer();
    const connection = await connectRaw(url);
    connection.socket.write(headersOf(url, "Transfer-Encoding: chunked"));
    const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
    let sent = 0;
    const pump = () => {
      while (!connection.socket.destroyed && connection.socket.writable) {
        sent += chunk.length;
        if (!connection.socket.write(chunk)) return;
      }
    };
    connection.socket.on("drain", pump);
    pump();
    expect(problemIn(await connection.closed())).toMatchObject(TOO_LARGE);
    expect(sent).toBeLessThan(4 * MAX_HTTP_BODY_BYTES);
  });

  test("leave an ordinary client with the refusal and able to go on", async () => {
    const { url } = await startTestServer();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const body = Buffer.alloc(12 * 1024 * 1024, " ");
    const status = await new Promise((done, fail) => {
      const options = { method: "POST", agent, headers: { ...JSON_TYPE, "content-length": body.length } };
      const sending = httpRequest(`${url}/v1/jobs`, options, (response) => {
        response.resume().on("end", () => done(response.statusCode));
      });
      sending.on("error", fail);
      sending.end(body);
    });
    expect(status).toBe(413);
    const next = await new Promise((done, fail) => {
      httpRequest(`${url}/v1/health`, { agent }, (response) =>
        response.resume().on("end", () => done(response.statusCode)),
      )
        .on("error", fail)
        .end();
    });
    expect(next).toBe(200);
    agent.destroy();
  });

  test("of an early refusal are read away, so that the connection ends in order and the refusal arrives", async () => {
    const { url } = await startTestServer();
    const connection = await connectRaw(url);
    const length = 1024 * 1024;
    connection.socket.write(`POST /v1/jobs HTTP/1.1\r\nHost: evil.example\r\nContent-Length: ${length}\r\n\r\n`);
    await connection.until(/ACCESS_DENIED/);
    await new Promise<void>((done) => connection.socket.write("x".repeat(length), () => done()));
    expect(problemIn(await connection.closed())).toMatchObject({ status: 403 });
    expect(connection.wasReset()).toBe(false);
  });

  test("of a refused request are not taken for the next request", async () => {
    const { url } = await startTestServer();
    const smuggled = `GET /v1/jobs HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`;
    const text = await exchangeRaw(
      url,
      `POST /v1/jobs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    );
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(problemIn(text)).toMatchObject({ status: 403 });
  });
});

describe("starting and stopping", () => {
  test("a taken port is the system's error, and nothing stays open", async () => {
    const { url } = await startTestServer();
    const project = readProject(temporaryProject());
    const options = {
      project,
      dataDirectory: `${project.root}/data`,
      port: Number(new URL(url).port),
      clock: Date.now,
      timer: realTimer,
      env: {},
      background: "none" as const,
      log: () => undefined,
    };
    await expect(startLocalServer(options)).rejects.toMatchObject({ code: "EADDRINUSE", syscall: "listen" });
    const other = await startLocalServer({ ...options, port: 0 });
    await other.close();
  });

  test("closing cuts idle, half-read and unread connections, and may be done twice", async () => {
    const server = await startTestServer();
    const { host } = new URL(server.url);
    const idle = await connectRaw(server.url);
    const half = await connectRaw(server.url);
    half.socket.write(`POST /v1/jobs HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n`);
    await half.until(/100 Continue/);
    const kept = await connectRaw(server.url);
    kept.socket.write(`GET /v1/health HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await kept.until(/"status":"ok"/);
    await server.close();
    await server.close();
    await Promise.all([idle.closed(), half.closed(), kept.closed()]);
    await expect(fetch(`${server.url}/v1/health`)).rejects.toThrow();
  });

  test("a job that was running when the server closed is kept", async () => {
    const root = temporaryProject();
    const options = {
      project: readProject(root),
      dataDirectory: `${root}/data`,
      port: 0,
      clock: Date.now,
      timer: realTimer,
      env: {},
      background: "none" as const,
      log: () => undefined,
    };
    const first = await startLocalServer(options);
    const report = await postJob(first.url);
    const cut = fetch(`${first.url}/v1/jobs`, { method: "POST", headers: JSON_TYPE, body: JOB }).catch(() => undefined);
    await first.close();
    await cut;
    const second = await startLocalServer(options);
    const response = await fetch(`${second.url}/v1/jobs/${report.job_id}`);
    expect(JobReport.parse(await response.json())).toMatchObject({ job_id: report.job_id, status: "succeeded" });
    await second.close();
  });
});
