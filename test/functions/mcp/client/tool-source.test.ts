import { describe, expect, test } from "vitest";
import type { MCPServerConfig } from "../../../../functions/contract/mcp-server.ts";
import { DEFAULT_LIST_LIMITS } from "../../../../functions/mcp/client/list-tools.ts";
import {
  ample,
  aTool,
  manualDeadline,
  messageOf,
  overHttp,
  overStdio,
  secretNamed,
  secretsOf,
  serveMcp,
  serveScript,
  sourceOf,
} from "../../../kit/mcp-peers.ts";
import {
  type Exchange,
  sendError,
  sendEvents,
  sendResult,
  sendStatus,
  WRITTEN,
} from "../../../kit/mcp-script-server.ts";
import type { Failure } from "../../../kit/mcp-server.ts";
import "../../../kit/to-fail.ts";

/** What a stateless server answers `tools/list` with. */
const page = (tools: readonly unknown[], more: object = {}) => ({
  resultType: "complete",
  tools,
  ttlMs: 0,
  cacheScope: "private",
  ...more,
});

describe.each(["2026-07-28", "2025-11-25", "both"] as const)("a server that speaks %s", (protocol) => {
  test("gives the tools of all pages as they were offered", async () => {
    const whole = aTool("b", { title: "B", annotations: { readOnlyHint: true }, outputSchema: { type: "object" } });
    const bare = { name: "a", inputSchema: { type: "object" as const, properties: {} } };
    const server = await serveMcp({ tools: [whole, bare, aTool("c")], protocol, pageSize: 1 });
    expect(await sourceOf(overHttp(server.url)).list("s1", ample())).toMatchObject({
      ok: true,
      value: { tools: [bare, whole, aTool("c")], quarantined: [] },
    });
    expect(server.listCalls()).toBe(3);
  });

  test.each<[Failure, string]>([
    [503, "answered HTTP 503"],
    [401, "refused the credential (HTTP 401); check its headers, of which it has none,"],
    [403, "denied access (HTTP 403); check what its headers, of which it has none, allows"],
    [404, "answered HTTP 404"],
    ["reset", "cannot be reached (UND_ERR_SOCKET)"],
    ["garbage", "answered with what the protocol does not provide for"],
  ])("that fails with %s at its list says what happened", async (how, reason) => {
    const server = await serveMcp({ tools: [aTool("a")], protocol });
    server.fail(how, { method: "tools/list" });
    const listed = await sourceOf(overHttp(server.url)).list("s1", ample());
    expect(listed).toFail("SERVER_UNAVAILABLE");
    expect(messageOf(listed)).toBe(`server "s1": ${reason}`);
  });

  test.each<Failure>([503, 401, 404, "reset", "garbage"])(
    "that fails with %s at everything is unavailable",
    async (how) => {
      const server = await serveMcp({ tools: [aTool("a")], protocol });
      server.fail(how);
      expect(await sourceOf(overHttp(server.url)).list("s1", ample())).toFail("SERVER_UNAVAILABLE");
    },
  );

  test.each(["server/discover", "initialize", "tools/list"])(
    "that is silent at %s is left at the deadline",
    async (method) => {
      const server = await serveMcp({ tools: [aTool("a")], protocol });
      server.fail("stall", { method });
      const { abortAfter, expire } = manualDeadline();
      const listing = sourceOf(overHttp(server.url), { abortAfter }).list("s1", ample());
      const isAsked = () => server.methods().includes(method);
      await Promise.race([expect.poll(isAsked).toBe(true), listing]);
      expire();
      const listed = await listing;
      if (isAsked()) expect(messageOf(listed)).toBe('server "s1": did not answer in time');
      else expect(listed).toMatchObject({ ok: true });
    },
  );
});

describe("a server without a session", () => {
  const tools = [aTool("a")];

  test("says how long its list is good", async () => {
    const server = await serveMcp({ tools, ttlMs: 300_000 });
    expect(await sourceOf(overHttp(server.url)).list("s1", ample())).toMatchObject({ value: { ttlMs: 300_000 } });
  });

  test("with one broken tool keeps the others, although the protocol calls the whole answer broken", async () => {
    const broken = [
      { name: "b", inputSchema: { type: "string" } },
      { name: 5 },
      null,
      aTool("c", { title: 7 as never }),
    ];
    const server = await serveScript({ protocol: "2026-07-28" }, ({ method }) =>
      method === "tools/list" ? page([aTool("a"), ...broken]) : undefined,
    );
    const listed = await sourceOf(overHttp(server.url)).list("s1", ample());
    expect(listed).toMatchObject({ value: { tools: [{ name: "a" }] } });
    expect(listed.ok && listed.value.quarantined.map(({ name }) => name)).toEqual(["(unnamed)", "(unnamed)", "b", "c"]);
  });

  test("that asks for an argument in a header in no way that is provided for loses the tool, and keeps it elsewhere", async () => {
    const asking = aTool("asking", {
      inputSchema: { type: "object", properties: { a: { type: "number", "x-mcp-header": "A" } } },
    });
    const namesOf = async (config: MCPServerConfig) => {
      const listed = await sourceOf(config).list("s1", ample());
      return listed.ok ? listed.value.tools.map(({ name }) => name) : [];
    };
    const offered = [asking, aTool("a")];
    const server = await serveScript({ protocol: "2026-07-28" }, ({ method }) =>
      method === "tools/list" ? page(offered) : undefined,
    );
    expect(await namesOf(overHttp(server.url))).toEqual(["a"]);
    const older = await serveMcp({ tools: offered, protocol: "2025-11-25" });
    expect(await namesOf(overHttp(older.url))).toEqual(["a", "asking"]);
    expect(await namesOf(overStdio({ manner: "honest", tools: offered }))).toEqual(["a", "asking"]);
  });

  test("may leave out how long its list is good, or say what cannot be meant", async () => {
    const server = await serveScript({ protocol: "2026-07-28" }, ({ method }) =>
      method === "tools/list" ? { resultType: "complete", tools, ttlMs: -1 } : undefined,
    );
    const listed = await sourceOf(overHttp(server.url)).list("s1", ample());
    expect(listed).toMatchObject({ ok: true });
    expect(listed.ok && listed.value).not.toHaveProperty("ttlMs");
  });

  test("that breaks off after the first of two pages gives nothing", async () => {
    const server = await serveScript({ protocol: "2026-07-28" }, ({ method, before }) => {
      if (method !== "tools/list") return undefined;
      if (before === 1) throw new Error("the line breaks");
      return page(tools, { nextCursor: "2" });
    });
    const listed = await sourceOf(overHttp(server.url)).list("s1", ample());
    expect(messageOf(listed)).toBe('server "s1": cannot be reached (UND_ERR_SOCKET)');
    expect(server.methods.filter((method) => method === "tools/list")).toHaveLength(2);
  });

  test.each([
    [
      "a JSON-RPC error",
      (exchange: Exchange) => sendError(exchange, { code: -32603, message: "boom" }),
      "answered with JSON-RPC error -32603",
    ],
    [
      "no result",
      (exchange: Exchange) => sendResult(exchange, page({} as never)),
      "page 1 of its list is none: /tools: expected array, received object",
    ],
    [
      "a result that does not say its kind",
      (exchange: Exchange) => sendResult(exchange, { tools: [] }),
      "answered with what is no result of the protocol",
    ],
    [
      "a wish of its own",
      (exchange: Exchange) =>
        sendResult(exchange, { resultType: "input_required", inputRequests: { a: { method: "roots/list" } } }),
      "asks for input in return, which is not offered here",
    ],
    [
      "a stream that ends without an answer",
      (exchange: Exchange) => {
        sendEvents(exchange, []);
        exchange.response.end();
        return WRITTEN;
      },
      "ended the connection without an answer",
    ],
    [
      "a stream that breaks without an answer",
      (exchange: Exchange) => {
        sendEvents(exchange, [{ jsonrpc: "2.0", method: "notifications/x" }]);
        setImmediate(() => exchange.response.destroy());
        return WRITTEN;
      },
      "ended the connection without an answer",
    ],
    [
      "a redirect",
      (exchange: Exchange) => {
        exchange.response.setHeader("location", "http://127.0.0.1:1/");
        return sendStatus(exchange, 307);
      },
      "answered with a redirect (HTTP 307), which is not followed; name the final URL in its entry",
    ],
  ])("that answers with %s says so", async (_, answer, reason) => {
    const server = await serveScript({ protocol: "2026-07-28" }, (exchange) =>
      exchange.method === "tools/list" ? answer(exchange) : undefined,
    );
    const listed = await sourceOf(overHttp(server.url)).list("s1", ample());
    expect(listed).toFail("SERVER_UNAVAILABLE");
    expect(messageOf(listed)).toBe(`server "s1": ${reason}`);
  });

  test("that sends its answer as an event is heard", async () => {
    const server = await serveScript({ protocol: "2026-07-28" }, (exchange) =>
      exchange.method === "tools/list"
        ? sendEvents(exchange, [{ jsonrpc: "2.0", id: exchange.id, result: page(tools) }])
        : undefined,
    );
    expect(await sourceOf(overHttp(server.url)).list("s1", ample())).toMatchObject({ ok: true });
  });

  test("that has pages without end is left at the limit", async () => {
    const server = await serveScript({ protocol: "2026-07-28" }, ({ method, before }) =>
      method === "tools/list" ? page([aTool(`t${before}`)], { nextCursor: `c${before}` }) : undefined,
    );
    const limits = { ...DEFAULT_LIST_LIMITS, maxPages: 5 };
    const listed = await sourceOf(overHttp(server.url), { limits }).list("s1", ample());
    expect(messageOf(listed)).toBe('server "s1": its list has more than 5 pages, which is more than is read');
    expect(server.methods.filter((method) => method === "tools/list")).toHaveLength(5);
  });

  test.each([
    [
      "as JSON",
      (exchange: Exchange) => {
        exchange.response.writeHead(200, { "content-type": "application/json" });
      },
    ],
    [
      "as events",
      (exchange: Exchange) => {
        exchange.response.writeHead(200, { "content-type": "text/event-stream" });
        exchange.response.write("data: ");
      },
    ],
  ])("that has an answer without end, %s, is left at the limit", async (_, begin) => {
    let sent = 0;
    const server = await serveScript({ protocol: "2026-07-28" }, (exchange) => {
      if (exchange.method !== "tools/list") return undefined;
      begin(exchange);
      const more = () => {
        sent += 65_536;
        if (!exchange.response.destroyed) exchange.response.write("x".repeat(65_536), more);
      };
      more();
      return WRITTEN;
    });
    const limits = { ...DEFAULT_LIST_LIMITS, maxBytes: 100_000 };
    const listed = await sourceOf(overHttp(server.url), { limits }).list("s1", ample());
    expect(messageOf(listed)).toBe('server "s1": sent more than 100000 bytes in one answer');
    expect(sent).toBeLessThan(20_000_000);
  });

  test("that has too many bytes on all pages together is left at the limit", async () => {
    const server = await serveScript({ protocol: "2026-07-28" }, ({ method, before }) =>
      method === "tools/list"
        ? page([aTool(`t${before}`, { description: "x".repeat(10_000) })], { nextCursor: `c${before}` })
        : undefined,
    );
    const limits = { ...DEFAULT_LIST_LIMITS, maxBytes: 50_000 };
    const listed = await sourceOf(overHttp(server.url), { limits }).list("s1", ample());
    expect(messageOf(listed)).toBe('server "s1": its list has more than 50000 bytes, which is more than is read');
    expect(server.methods.filter((method) => method === "tools/list")).toHaveLength(5);
  });
});

describe("a server with sessions", () => {
  const tools = [aTool("a"), aTool("b")];
  const counted = (methods: readonly string[], wanted: string) => methods.filter((method) => method === wanted).length;

  test("takes leave of them", async () => {
    const server = await serveMcp({ tools, protocol: "2025-11-25" });
    await sourceOf(overHttp(server.url)).list("s1", ample());
    expect(server.methods().at(-1)).toBe("DELETE");
  });

  test("that forgot the session is asked once more, in a new one", async () => {
    const server = await serveScript({ protocol: "2025-11-25" }, (exchange) => {
      if (exchange.method !== "tools/list") return undefined;
      return exchange.headers["mcp-session-id"] === "session-1" ? sendStatus(exchange, 404) : { tools };
    });
    expect(await sourceOf(overHttp(server.url)).list("s1", ample())).toMatchObject({ value: { tools } });
    expect(counted(server.methods, "initialize")).toBe(2);
  });

  test("that forgot it on the second page is asked for all pages again", async () => {
    const server = await serveScript({ protocol: "2025-11-25" }, (exchange) => {
      if (exchange.method !== "tools/list") return undefined;
      if (exchange.params.cursor === undefined) return { tools: [aTool("a")], nextCursor: "2" };
      return exchange.headers["mcp-session-id"] === "session-1" ? sendStatus(exchange, 404) : { tools: [aTool("b")] };
    });
    expect(await sourceOf(overHttp(server.url)).list("s1", ample())).toMatchObject({ value: { tools } });
    expect(counted(server.methods, "tools/list")).toBe(4);
  });

  test("that forgets every session is not asked for ever", async () => {
    const server = await serveScript({ protocol: "2025-11-25" }, (exchange) =>
      exchange.method === "tools/list" ? sendStatus(exchange, 404) : undefined,
    );
    const listed = await sourceOf(overHttp(server.url)).list("s1", ample());
    expect(messageOf(listed)).toBe('server "s1": answered HTTP 404');
    expect(counted(server.methods, "initialize")).toBe(2);
  });

  test("that is not where it is looked for is not asked again", async () => {
    const server = await serveScript({ protocol: "2025-11-25", sessions: false }, (exchange) =>
      exchange.method === "tools/list" ? sendStatus(exchange, 404) : undefined,
    );
    expect(await sourceOf(overHttp(server.url)).list("s1", ample())).toFail("SERVER_UNAVAILABLE");
    expect(counted(server.methods, "initialize")).toBe(1);
  });

  test("that wants the operator to sign in is not asked again, and the operator is told which credential to look at", async () => {
    const server = await serveMcp({ tools, protocol: "2025-11-25", authorization: "Bearer the-right-one" });
    const config = overHttp(server.url, { Authorization: `Bearer ${secretNamed("TOKEN")}` });
    const listed = await sourceOf(config, { readSecret: secretsOf({ TOKEN: "the-wrong-one" }) }).list("s1", ample());
    expect(listed).toFail("SERVER_UNAVAILABLE");
    expect(messageOf(listed)).toBe(
      `server "s1": refused the credential (HTTP 401); check its header "Authorization" (${secretNamed("TOKEN")})`,
    );
    expect(server.methods()).toEqual(["server/discover"]);
  });

  test("that neither answers the farewell is left all the same", async () => {
    const server = await serveMcp({ tools, protocol: "2025-11-25" });
    server.fail("stall", { method: "DELETE" });
    expect(await sourceOf(overHttp(server.url)).list("s1", ample())).toMatchObject({ ok: true });
  });
});

describe("secrets", () => {
  const TOKEN = "correct-horse-battery";

  test("are sent where they are named", async () => {
    const server = await serveMcp({ tools: [aTool("a")], authorization: `Bearer ${TOKEN}` });
    const config = overHttp(server.url, { authorization: `Bearer ${secretNamed("TOKEN")}` });
    const source = sourceOf(config, { readSecret: secretsOf({ TOKEN }) });
    expect(await source.list("s1", ample())).toMatchObject({ ok: true });
  });

  test("that are missing are named, and nothing is sent", async () => {
    const server = await serveMcp({ tools: [] });
    const listed = await sourceOf(overHttp(server.url, { a: secretNamed("TOKEN") })).list("s1", ample());
    expect(messageOf(listed)).toBe(`server "s1": the secret ${secretNamed("TOKEN")} is not set`);
    expect(server.methods()).toEqual([]);
  });

  test("that nobody hands over do not keep the list waiting past its deadline", async () => {
    const { abortAfter, expire } = manualDeadline();
    const readSecret = () => new Promise<never>(() => undefined);
    const listing = sourceOf(overHttp("http://127.0.0.1:1", { a: secretNamed("A") }), { readSecret, abortAfter }).list(
      "s1",
      ample(),
    );
    expire();
    expect(messageOf(await listing)).toBe('server "s1": its secrets were not read in time');
  });

  test.each<[string, (exchange: Exchange, echo: string) => unknown]>([
    ["an HTTP error", (exchange, echo) => sendStatus(exchange, 503, echo)],
    ["a refused credential", (exchange, echo) => sendStatus(exchange, 401, echo)],
    [
      "the phrase of a status",
      (exchange, echo) => {
        exchange.response.writeHead(500, echo).end();
        return WRITTEN;
      },
    ],
    ["a JSON-RPC error", (exchange, echo) => sendError(exchange, { code: -32000, message: echo, data: echo })],
    [
      "a redirect",
      (exchange, echo) => {
        exchange.response.setHeader("location", `http://${encodeURIComponent(echo)}/`);
        return sendStatus(exchange, 302);
      },
    ],
    [
      "garbage",
      (exchange, echo) => {
        exchange.response.setHeader("content-type", echo);
        return sendStatus(exchange, 200, echo);
      },
    ],
    ["a broken page", (_, echo) => page(echo as never)],
    ["a broken tool", (_, echo) => page([{ name: echo, inputSchema: { type: echo, $schema: echo } }])],
    ["a whole tool", (_, echo) => page([aTool("a", { description: echo })])],
    ["a cursor", (_, echo) => page([], { nextCursor: echo })],
  ])("that the server sends back in %s are in no message, cause or list", async (_, answer) => {
    const server = await serveScript({ protocol: "2026-07-28" }, (exchange) =>
      exchange.method === "tools/list" ? answer(exchange, String(exchange.headers.authorization)) : undefined,
    );
    const config = overHttp(server.url, { authorization: `Bearer ${secretNamed("TOKEN")}` });
    const listed = await sourceOf(config, { readSecret: secretsOf({ TOKEN }) }).list("s1", ample());
    const cause = listed.ok ? undefined : listed.fault.cause;
    const told = `${messageOf(listed)} ${JSON.stringify(listed)} ${cause instanceof Error ? cause.message : cause}`;
    expect(server.methods).toContain("tools/list");
    expect(told).not.toContain(TOKEN);
  });
});

describe("a server that is a process", () => {
  const tools = [aTool("a")];

  test.each(["honest", "telling", "abrupt"])("and %s gives its list", async (manner) => {
    const listed = await sourceOf(overStdio({ manner, tools })).list("s1", ample());
    expect(listed).toMatchObject({ ok: true, value: { tools } });
  });

  test("that is silent at what it does not know is asked in the older way", async () => {
    const config = overStdio({ manner: "silent", tools });
    expect(await sourceOf(config).list("s1", { deadline: Date.now() + 3_000 })).toMatchObject({ value: { tools } });
  });

  test("that ends while it is asked says how, and what it wrote last goes to the log alone", async () => {
    const listed = await sourceOf(overStdio({ manner: "dying" })).list("s1", ample());
    expect(listed).toMatchObject({
      fault: {
        code: "SERVER_UNAVAILABLE",
        message: 'server "s1": its process ended (3)',
        cause: { message: expect.stringContaining("out of memory") },
      },
    });
  });

  test("that has an answer without end is left at the limit", async () => {
    const limits = { ...DEFAULT_LIST_LIMITS, maxBytes: 100_000 };
    const listed = await sourceOf(overStdio({ manner: "endless" }), { limits }).list("s1", ample());
    expect(messageOf(listed)).toBe('server "s1": sent more than 100000 bytes in one answer');
  });

  test("that cannot be started says by which error of the system, and names no path", async () => {
    const config = { ...overStdio({}), command: "/no/such/command" };
    const listed = await sourceOf(config).list("s1", ample());
    expect(messageOf(listed)).toBe('server "s1": its process cannot be used (ENOENT)');
  });
});

describe("a source", () => {
  test("connects with nobody before it is asked", async () => {
    const server = await serveMcp({ tools: [] });
    sourceOf(overHttp(server.url));
    expect(server.methods()).toEqual([]);
  });

  test("does not begin past the deadline", async () => {
    const server = await serveMcp({ tools: [] });
    const listed = await sourceOf(overHttp(server.url)).list("s1", { deadline: Date.now() });
    expect(listed).toFail("SERVER_UNAVAILABLE");
    expect(server.methods()).toEqual([]);
  });

  test("takes a server that nobody declared for a defect", async () => {
    await expect(sourceOf(overHttp("http://127.0.0.1:1")).list("s2", ample())).rejects.toThrow('no MCP server "s2"');
  });

  test("says of a server that is not there that it cannot be reached", async () => {
    const server = await serveMcp({ tools: [] });
    await server.close();
    const listed = await sourceOf(overHttp(server.url)).list("s1", ample());
    expect(messageOf(listed)).toBe('server "s1": cannot be reached (ECONNREFUSED)');
  });
});
