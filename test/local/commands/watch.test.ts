import { describe, expect, test } from "vitest";
import { RefreshReport } from "../../../functions/contract/refresh.ts";
import { startCommand } from "../../kit/child-command.ts";
import { runCli } from "../../kit/command-line.ts";
import { aTool, serveMcp } from "../../kit/mcp-peers.ts";
import { projectWithServers } from "./mcp-project.ts";

const PATIENCE = { timeout: 20_000, interval: 20 };

describe("watch", () => {
  test("refreshes this machine's catalog at every change, and ends with 0 at Ctrl-C", async () => {
    const server = await serveMcp({ tools: [aTool("a")] });
    const cwd = projectWithServers({ s1: { url: server.url } }, { debounceSeconds: 0.1 });
    const watching = startCommand(["watch"], { cwd });
    await watching.until(/s1 {2}generation 1: /);
    server.setTools([aTool("a"), aTool("b")]);
    server.notify();
    await watching.until(/s1 {2}generation 2: /);
    const last = await runCli(["refresh", "--last"], { cwd });
    expect(last.out).toMatch(/added {6}s1\/b@/);
    watching.process.kill("SIGINT");
    expect(await watching.ended).toEqual({ code: 0, signal: null });
  });

  test("with --endpoint passes changes on to a service, though it is down at first", async () => {
    const server = await serveMcp({ tools: [aTool("a")] });
    const cwd = projectWithServers({ s1: { url: server.url } }, { debounceSeconds: 0.1 });
    const first = startCommand(["serve", "--port", "0", "--json"], { cwd });
    const { url } = JSON.parse(await first.until(/\n\}\n$/));
    first.process.kill("SIGTERM");
    await first.ended;
    const watching = startCommand(["watch", "--endpoint", url, "--json"], { cwd });
    await watching.until(/"server":"s1","event":"error: no answer/);
    // Only the watcher hears the server.
    const serving = startCommand(["serve", "--port", new URL(url).port], { cwd });
    await serving.until(/serves/);
    await watching.until(/"server":"s1","event":"notification queued"/);
    await expect
      .poll(
        async () => RefreshReport.parse(await (await fetch(`${url}/v1/refreshes/latest`)).json()).generation,
        PATIENCE,
      )
      .toBeGreaterThan(0);
    for (const line of watching.stdout().trim().split("\n")) {
      expect(JSON.parse(line)).toEqual({
        at: expect.any(String),
        server: expect.any(String),
        event: expect.any(String),
      });
    }
    watching.process.kill("SIGTERM");
    expect(await watching.ended).toEqual({ code: 0, signal: null });
  });

  test("says that there is nothing to watch, or what is wrong with mcp.json, and ends", async () => {
    expect(await runCli(["watch"], { cwd: projectWithServers({}) })).toMatchObject({ code: 1, out: "" });
    const wrong = await runCli(["watch"], { cwd: projectWithServers({ builtin: { url: "ftp://x" }, "a/b": {} }) });
    expect(wrong).toMatchObject({ code: 1, out: "" });
    for (const path of ["/mcpServers/builtin", "/mcpServers/builtin/url", "/mcpServers/a~1b"])
      expect(wrong.err).toContain(path);
  });
});
