import { describe, expect, test } from "vitest";
import { refuse, succeed } from "../../../../functions/contract/fault.ts";
import type { ReadSecret } from "../../../../functions/contract/ports.ts";
import {
  ample,
  aTool,
  manualDeadline,
  messageOf,
  overHttp,
  rotated,
  secretNamed,
  serveScript,
  sourceOf,
} from "../../../kit/mcp-peers.ts";
import { type Exchange, sendStatus } from "../../../kit/mcp-script-server.ts";
import "../../../kit/to-fail.ts";

const OLD = "the-old-credential";
const NEW = "the-new-credential";
const REFUSED = `server "s1": refused the credential (HTTP 401); check its header "authorization" (${secretNamed("TOKEN")})`;

const count = (methods: readonly string[], wanted: string) => methods.filter((method) => method === wanted).length;
const configOf = (url: string) => overHttp(url, { authorization: secretNamed("TOKEN") });
const isList = ({ method }: Exchange) => method === "tools/list";

/** A server with sessions that answers as the script says. */
const serve = (script: (exchange: Exchange) => unknown) => serveScript({ protocol: "2025-11-25" }, script);

/** Names of the tools, or why there are none. */
async function toolsOf(url: string, readSecret: ReadSecret = rotated(OLD, OLD)): Promise<unknown> {
  const listed = await sourceOf(configOf(url), { readSecret }).list("s1", ample());
  return listed.ok ? listed.value.tools.map(({ name }) => name) : messageOf(listed);
}

describe("a list for which the session is over", () => {
  test("is had in a new session: what is offered then, and not nothing", async () => {
    const server = await serve((exchange) => {
      if (!isList(exchange)) return undefined;
      const isForgotten = exchange.headers["mcp-session-id"] === "session-2";
      if (isForgotten) return sendStatus(exchange, 404);
      return { tools: exchange.before === 0 ? [aTool("a")] : [aTool("a"), aTool("b")] };
    });
    expect(await toolsOf(server.url)).toEqual(["a"]);
    expect(await toolsOf(server.url)).toEqual(["a", "b"]);
    expect(count(server.methods, "initialize")).toBe(1 + 2);
  });

  test("is not had when the new session is over too: it fails once, and nobody asks on and on", async () => {
    const server = await serve((exchange) => {
      if (!isList(exchange)) return undefined;
      return exchange.before === 0 ? { tools: [aTool("a")] } : sendStatus(exchange, 404);
    });
    expect(await toolsOf(server.url)).toEqual(["a"]);
    expect(await toolsOf(server.url)).toBe('server "s1": answered HTTP 404');
    expect([count(server.methods, "initialize"), count(server.methods, "tools/list")]).toEqual([1 + 2, 1 + 2]);
  });
});

describe.each([
  ["at everything", () => true, 1],
  ["at the list alone", isList, 2],
] as const)("a list for which the credential is refused, %s,", (_, isGuarded, initializes) => {
  /** Lets in whoever has this credential. */
  const guarded = (credential: string) =>
    serve((exchange) => {
      if (isGuarded(exchange) && exchange.headers.authorization !== credential) return sendStatus(exchange, 401);
      return isList(exchange) ? { tools: [aTool("a")] } : undefined;
    });

  test("is had with the one that is stored now, although an older one is remembered", async () => {
    const server = await guarded(NEW);
    expect(await toolsOf(server.url, rotated(OLD, NEW))).toEqual(["a"]);
    expect(count(server.methods, "initialize")).toBe(initializes);
  });

  test.each<[string, ReadSecret]>([
    ["the stored one is the same", rotated(OLD, OLD)],
    [
      "it cannot be read anew",
      async (_, { fresh = false } = {}) => (fresh ? refuse("SERVER_UNAVAILABLE", "no") : succeed(OLD)),
    ],
  ])("fails when %s, and the operator is told where to look; it is not tried again", async (_, readSecret) => {
    const server = await guarded(NEW);
    expect(await toolsOf(server.url, readSecret)).toBe(REFUSED);
    expect(count(server.methods, "initialize")).toBe(initializes - 1);
    expect(count(server.methods, "server/discover")).toBe(1);
  });

  test("fails when the stored one is refused too, without a third attempt", async () => {
    const server = await guarded("another one");
    let reads = 0;
    const readSecret: ReadSecret = async () => {
      reads += 1;
      return succeed(`credential-${reads}`);
    };
    expect(await toolsOf(server.url, readSecret)).toBe(REFUSED);
    expect([count(server.methods, "server/discover"), reads]).toEqual([2, 2]);
  });
});

describe("a second attempt", () => {
  test("is the last, whatever the two failed of", async () => {
    const server = await serve((exchange) => {
      if (!isList(exchange)) return undefined;
      return sendStatus(exchange, exchange.headers.authorization === NEW ? 404 : 401);
    });
    expect(await toolsOf(server.url, rotated(OLD, NEW))).toBe('server "s1": answered HTTP 404');
    expect(count(server.methods, "initialize")).toBe(2);
  });

  test("lets nothing of the first be shown: the server knows both credentials", async () => {
    const server = await serve((exchange) => {
      if (!isList(exchange)) return undefined;
      if (exchange.headers.authorization !== NEW) return sendStatus(exchange, 401);
      return { tools: [aTool("a", { description: OLD }), aTool("b", { description: NEW }), aTool("c")] };
    });
    expect(await toolsOf(server.url, rotated(OLD, NEW))).toEqual(["c"]);
  });

  test("is not made past the deadline, however long the new credential is waited for", async () => {
    const server = await serve((exchange) => sendStatus(exchange, 401));
    const { abortAfter, expire } = manualDeadline();
    const readSecret: ReadSecret = async (_, { fresh = false } = {}) => {
      if (!fresh) return succeed(OLD);
      expire();
      return new Promise(() => undefined);
    };
    const listed = await sourceOf(configOf(server.url), { readSecret, abortAfter }).list("s1", ample());
    expect(messageOf(listed)).toBe(REFUSED);
    expect(count(server.methods, "server/discover")).toBe(1);
  });
});
