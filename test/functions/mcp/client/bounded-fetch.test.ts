import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { createBoundedFetch } from "../../../../functions/mcp/client/bounded-fetch.ts";
import type { WireTrouble } from "../../../../functions/mcp/client/wire.ts";

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/mcp`;
}

/** What the fetch told, beside its answers. */
function watched({ maxBytes }: { readonly maxBytes: number }) {
  const troubles: WireTrouble[] = [];
  let bytes = 0;
  const watch = {
    maxBytes: () => maxBytes,
    onBytes: (count: number) => {
      bytes += count;
    },
    onTrouble: (trouble: WireTrouble) => troubles.push(trouble),
  };
  return { watch, troubles, bytes: () => bytes };
}

const post = { method: "POST", body: "{}" };

describe("an answer", () => {
  test.each([
    ["with its length", (size: number) => ({ "content-length": String(size) })],
    ["in chunks", () => ({ "transfer-encoding": "chunked" })],
  ])("%s may have the most bytes, and not one more", async (_, headers) => {
    const url = await serve((request, response) => {
      const size = Number(request.headers["x-size"]);
      response.writeHead(200, headers(size));
      response.end("x".repeat(size));
    });
    const { watch, troubles, bytes } = watched({ maxBytes: 1_000 });
    const bounded = createBoundedFetch(watch);
    const ask = async (size: number) => (await bounded(url, { ...post, headers: { "x-size": String(size) } })).text();
    expect(await ask(1_000)).toHaveLength(1_000);
    expect(bytes()).toBe(1_000);
    await expect(ask(1_001)).rejects.toThrow("sent more than 1000 bytes in one answer");
    expect(troubles).toEqual([{ tooLarge: true, message: "sent more than 1000 bytes in one answer" }]);
  });

  test("without an end is left, and the server sees it go", async () => {
    let gone = false;
    const url = await serve((_, response) => {
      const more = () => response.write("x".repeat(1_000), () => (gone ? undefined : setImmediate(more)));
      response.on("close", () => {
        gone = true;
      });
      more();
    });
    const { watch, bytes } = watched({ maxBytes: 10_000 });
    const response = await createBoundedFetch(watch)(url, post);
    await expect(response.text()).rejects.toThrow("sent more than");
    await expect.poll(() => gone).toBe(true);
    expect(bytes()).toBeLessThan(1_000_000);
  });

  test("is counted as it is after decompression", async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { "content-encoding": "gzip" });
      response.end(gzipSync("x".repeat(1_000_000)));
    });
    const { watch } = watched({ maxBytes: 100_000 });
    const response = await createBoundedFetch(watch)(url, post);
    await expect(response.text()).rejects.toThrow("sent more than");
  });

  test("keeps its status, headers and emptiness", async () => {
    const url = await serve((_, response) => response.writeHead(204, { "mcp-session-id": "s" }).end());
    const response = await createBoundedFetch(watched({ maxBytes: 1 }).watch)(url, post);
    expect([response.status, response.headers.get("mcp-session-id"), await response.text()]).toEqual([204, "s", ""]);
  });
});

describe("a redirect", () => {
  test.each([301, 302, 303, 307, 308])(
    "by %i is not followed, so that no header goes to another place",
    async (status) => {
      const seen: unknown[] = [];
      const elsewhere = await serve((request, response) => {
        seen.push(request.headers);
        response.end();
      });
      const url = await serve((_, response) => response.writeHead(status, { location: elsewhere }).end("moved"));
      const { watch, troubles } = watched({ maxBytes: 100 });
      const bounded = createBoundedFetch(watch);
      await expect(bounded(url, { ...post, headers: { authorization: "Bearer secret" } })).rejects.toThrow("redirect");
      expect(troubles).toEqual([{ tooLarge: false, message: expect.stringContaining(`HTTP ${status}`) }]);
      expect(seen).toEqual([]);
    },
  );

  test("within the same place is not followed either", async () => {
    const url = await serve((_, response) => response.writeHead(307, { location: "/other" }).end());
    await expect(createBoundedFetch(watched({ maxBytes: 100 }).watch)(url, post)).rejects.toThrow("redirect");
  });
});

describe("the stream of a session", () => {
  test("is not opened when nobody watches it", async () => {
    let asked = 0;
    const url = await serve((_, response) => {
      asked += 1;
      response.end();
    });
    const response = await createBoundedFetch(watched({ maxBytes: 100 }).watch)(url, { method: "GET" });
    expect([response.status, asked]).toEqual([405, 0]);
  });

  /** What the watch was told, in order. */
  async function told(answer: RequestListener): Promise<readonly unknown[]> {
    const events: unknown[] = [];
    const stream = { onOpen: () => events.push("open"), onEnd: (status?: number) => events.push(status ?? "end") };
    const bounded = createBoundedFetch(watched({ maxBytes: 100 }).watch, stream);
    const url = await serve(answer);
    await bounded(url, { method: "GET" })
      .then((response) => response.text())
      .catch(() => undefined);
    await expect.poll(() => events.length).toBeGreaterThan(0);
    return events;
  }

  test("tells of its opening and its end", async () => {
    expect(await told((_, response) => response.end(": hello\n\n"))).toEqual(["open", "end"]);
  });

  test("tells when the line breaks, or carries too much", async () => {
    const broken: RequestListener = (_, response) => {
      response.write(": hello\n\n", () => response.destroy());
    };
    expect(await told(broken)).toEqual(["open", "end"]);
    expect(await told((_, response) => response.end("x".repeat(101)))).toEqual(["open", "end"]);
  });

  test("tells by which status it was refused, and when there is nobody", async () => {
    expect(await told((_, response) => response.writeHead(405).end("no"))).toEqual([405]);
    expect(await told((request) => request.destroy())).toEqual(["end"]);
  });
});
