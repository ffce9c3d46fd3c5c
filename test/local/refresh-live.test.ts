import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { JobReport } from "../../functions/contract/job.ts";
import { LIST_CHANGED } from "../../functions/contract/notification.ts";
import { mcpRef, wholeApproval } from "../../functions/contract/offered-tool.ts";
import { RefreshReport } from "../../functions/contract/refresh.ts";
import { instructions } from "../functions/catalog/catalogs.ts";
import { pinnedRoot } from "../functions/repository/skills-on-disk.ts";
import { type ChildCommand, startCommand } from "../kit/child-command.ts";
import { temporaryDirectory } from "../kit/local-service.ts";
import { aTool, serveMcp } from "../kit/mcp-peers.ts";
import type { McpTestServer } from "../kit/mcp-server.ts";

/** The running service as a process of its own, with a real MCP server beside it: what a caller and an operator see. */

const WINDOW_SECONDS = 0.5;
/** For what must happen at some time; not how long it takes. */
const PATIENCE = { timeout: 30_000, interval: 20 };

type Live = {
  readonly root: string;
  readonly server: McpTestServer;
  /** Starts the service; the one before must have ended. */
  readonly serve: () => Promise<Service>;
};

type Service = {
  readonly url: string;
  readonly child: ChildCommand;
  readonly latest: () => Promise<RefreshReport>;
  readonly post: (path: string, body: unknown) => Promise<Response>;
  readonly notify: () => Promise<number>;
};

async function live(tools = [aTool("a"), aTool("b")], approved: readonly string[] = []): Promise<Live> {
  const skillsRoot = pinnedRoot(instructions("acme/both", { tools: ["s1/a", "s1/b"] }));
  const root = temporaryDirectory();
  const server = await serveMcp({ tools });
  writeFileSync(
    join(root, "cdk.json"),
    JSON.stringify({ context: { skills: skillsRoot, tools: approved, debounceSeconds: WINDOW_SECONDS } }),
  );
  writeFileSync(join(root, "mcp.json"), JSON.stringify({ mcpServers: { s1: { url: server.url } } }));
  return { root, server, serve: () => serve(root) };
}

async function serve(root: string): Promise<Service> {
  const child = startCommand(["serve", "--port", "0", "--json"], { cwd: root });
  const { url } = JSON.parse(await child.until(/\}\n/));
  const post = (path: string, body: unknown) =>
    fetch(`${url}${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });
  return {
    url,
    child,
    post,
    latest: async () => RefreshReport.parse(await (await fetch(`${url}/v1/refreshes/latest`)).json()),
    notify: async () => (await post("/v1/notifications", { server: "s1", method: LIST_CHANGED })).status,
  };
}

/** Once the service has connected and fetched what it fetches by itself, so that what follows is counted from there. */
async function settled({ server }: Live, service: Service): Promise<number> {
  await expect.poll(() => server.listeners(), PATIENCE).toBe(1);
  await expect.poll(async () => (await service.latest()).servers[0]?.status, PATIENCE).toBe("fresh");
  return quiet(server);
}

/** Lists asked for so far, once nothing was asked for longer than a window and its delay. */
async function quiet(server: McpTestServer): Promise<number> {
  let last = { lists: server.listCalls(), at: Date.now() };
  const restedMs = () => {
    if (server.listCalls() !== last.lists) last = { lists: server.listCalls(), at: Date.now() };
    return Date.now() - last.at;
  };
  await expect.poll(restedMs, PATIENCE).toBeGreaterThan(WINDOW_SECONDS * 4_000);
  return last.lists;
}

const refs = (texts: readonly string[]) => texts.map((text) => text.replace(/@[0-9a-f]{12}$/, ""));

describe("a storm", () => {
  test("of five hundred notifications in two seconds is one refresh, and one more during it is exactly one more", async () => {
    const made = await live();
    const service = await made.serve();
    const before = await settled(made, service);
    const { generation } = await service.latest();
    const release = made.server.holdLists();
    for (let sent = 0; sent < 500; sent += 25) {
      const answers = Array.from({ length: 25 }, () => service.notify());
      expect(new Set(await Promise.all(answers))).toEqual(new Set([202]));
      await new Promise((done) => setTimeout(done, 2_000 / 20));
    }
    await expect.poll(() => made.server.listCalls(), PATIENCE).toBe(before + 1);
    expect(await service.notify()).toBe(202);
    release();
    await expect.poll(async () => (await service.latest()).generation, PATIENCE).toBe(generation + 2);
    expect(made.server.listCalls()).toBe(before + 2);
    expect(await service.latest()).toMatchObject({ cause: { type: "notification", servers: ["s1"] } });
    expect(await quiet(made.server)).toBe(before + 2);
  });
});

describe("a tool that goes and comes back", () => {
  test("fails its skill by name within the window and a second, heals it when it is back, and each change is told", async () => {
    const made = await live();
    const service = await made.serve();
    await settled(made, service);
    const change = async (tools: readonly string[]) => {
      const { generation } = await service.latest();
      const at = Date.now();
      made.server.setTools(tools.map((name) => aTool(name)));
      made.server.notify();
      await expect.poll(async () => (await service.latest()).generation, PATIENCE).toBe(generation + 1);
      return { took: Date.now() - at, report: await service.latest() };
    };
    const gone = await change(["a"]);
    expect(gone.report).toMatchObject({ failed: { "acme/both": "missing tools: acme/both: s1/b" }, refreshed: [] });
    expect(refs(gone.report.changes.removed)).toEqual(["s1/b"]);
    expect(gone.report.changes).toMatchObject({ added: [], changed: [] });
    const back = await change(["a", "b", "c"]);
    expect(back.report).toMatchObject({ failed: {}, refreshed: ["acme/both"] });
    expect(refs(back.report.changes.added)).toEqual(["s1/b", "s1/c"]);
    made.server.setTools([aTool("a", { description: "other" }), aTool("b"), aTool("c")]);
    made.server.notify();
    await expect
      .poll(async () => (await service.latest()).changes.changed.map(({ tool }) => tool), PATIENCE)
      .toEqual(["s1/a"]);
    // Measured here, promised in the documentation; a slow machine may need longer, so it is told and not demanded.
    console.info(`after ${gone.took} ms and ${back.took} ms, with a window of ${WINDOW_SECONDS * 1_000} ms`);
  });
});

test("a job that runs while a tool goes keeps the generation that it began with, and ends as it would have", async () => {
  const gate = Promise.withResolvers<void>();
  const slow = aTool("a", { answer: async () => gate.promise.then(() => ({})) });
  const ref = mcpRef("s1", aTool("a"));
  const made = await live([slow, aTool("b")], [wholeApproval("s1", aTool("a"))]);
  const service = await made.serve();
  await settled(made, service);
  const { generation } = await service.latest();
  const running = service.post("/v1/jobs", {
    allowed_skills: ["acme/both"],
    calls: [{ tool: ref, arguments: { n: 1 } }],
  });
  await expect.poll(() => made.server.calls().length, PATIENCE).toBe(1);
  made.server.setTools([slow]);
  made.server.notify();
  await expect.poll(async () => (await service.latest()).failed, PATIENCE).toHaveProperty(["acme/both"]);
  gate.resolve();
  const report = JobReport.parse(await (await running).json());
  expect(report).toMatchObject({ status: "succeeded", catalog_generation: generation });
  expect((await service.latest()).generation).toBe(generation + 1);
});

test("a service that is killed between any two steps loses no change that it was told of", async () => {
  const made = await live();
  let service = await made.serve();
  await settled(made, service);
  // Connected anew, the service would look at the list by itself; here only what is queued can make it look.
  made.server.fail(503, { method: "subscriptions/listen" });
  for (const [round, afterMs] of [0, 120, 500, 1_000, 1_100].entries()) {
    made.server.setTools([aTool("a"), aTool("b", { description: `round ${round}` })]);
    expect(await service.notify()).toBe(202);
    await new Promise((done) => setTimeout(done, afterMs));
    service.child.process.kill("SIGKILL");
    await service.child.ended;
    service = await made.serve();
  }
  const offered = async () => JSON.stringify(await (await fetch(`${service.url}/v1/tools`)).json());
  await expect.poll(offered, PATIENCE).toContain("round 4");
  expect((await service.latest()).cause).toEqual({ type: "notification", servers: ["s1"] });
});
