import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { orThrow } from "../../../functions/contract/fault.ts";
import { parseSettings } from "../../../functions/contract/settings.ts";
import { openLocalQueues } from "../../../local/queues.ts";
import { runCli } from "../../kit/command-line.ts";
import { projectWithServers } from "./mcp-project.ts";

const SERVERS = { s1: { url: "http://127.0.0.1:9/mcp" } };

/** The queues of a project, at a time of the test's own. */
function queuesOf(cwd: string, clock = Date.now) {
  const settings = orThrow(parseSettings({}));
  return openLocalQueues({ directory: join(cwd, ".skillbroker"), settings, clock, log: () => undefined });
}

describe("notify", () => {
  test("queues the notification for whoever serves the project", async () => {
    const cwd = projectWithServers(SERVERS);
    expect(await runCli(["notify", "s1"], { cwd })).toMatchObject({ code: 0, err: "" });
    expect(JSON.parse((await runCli(["notify", "s1", "--json"], { cwd })).out)).toEqual({ queued: true, server: "s1" });
    const queues = queuesOf(cwd);
    expect(await queues.notifications.receive({ max: 10 })).toHaveLength(2);
    queues.close();
  });

  test.each([
    [["notify"], 2],
    [["notify", "s1", "s2"], 2],
    [["notify", "s9"], 1],
    [["notify", "a/b"], 1],
  ])("%j is refused", async (words, code) => {
    expect(await runCli(words, { cwd: projectWithServers(SERVERS) })).toMatchObject({ code, out: "" });
  });
});

describe("dead-letters", () => {
  test("shows what failed too often with the reason, and puts it back", async () => {
    const cwd = projectWithServers(SERVERS);
    let now = Date.now() - 60_000;
    const queues = queuesOf(cwd, () => now);
    await queues.notifications.send({ body: '{"server":"s9\u200b"}' });
    for (let received = 0; received < 6; received += 1) {
      await queues.notifications.receive({ max: 1 });
      now += 6_000;
    }
    queues.close();
    const shown = await runCli(["dead-letters"], { cwd });
    expect(shown.code).toBe(0);
    expect(shown.out).toMatch(
      /^ {2}notifications {2}\S+ {2}.+\n {6}\{"server":"s9\\u\{200b\}"\}\n--redrive puts them back\n$/,
    );
    const json = JSON.parse((await runCli(["dead-letters", "--json"], { cwd })).out);
    expect(json).toMatchObject({ dead_letters: [{ queue: "notifications", receive_count: 5 }], redriven: 0 });
    expect((await runCli(["dead-letters", "--redrive"], { cwd })).out).toMatch(/1 put back\n$/);
    expect((await runCli(["dead-letters"], { cwd })).out).toBe("There are no dead letters.\n");
  });

  test("looks into this machine's queues only", async () => {
    const ran = await runCli(["dead-letters", "--endpoint", "https://x.example"], { cwd: projectWithServers(SERVERS) });
    expect(ran).toMatchObject({ code: 2, out: "" });
  });
});
