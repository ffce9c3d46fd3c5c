import { describe, expect, test } from "vitest";
import { startCommand } from "../../kit/child-command.ts";
import { runCli } from "../../kit/command-line.ts";
import { startTestServer, temporaryProject } from "../../kit/local-service.ts";

describe("serve", () => {
  test.each(["SIGINT", "SIGTERM"] as const)(
    "answers until %s, then ends with 0 though a connection is open",
    async (signal) => {
      const served = startCommand(["serve", "--port", "0", "--json"], { cwd: temporaryProject() });
      const { url } = JSON.parse(await served.until(/\n\}\n$/));
      expect((await fetch(`${url}/v1/health`)).status).toBe(200);
      served.process.kill(signal);
      expect(await served.ended).toEqual({ code: 0, signal: null });
      await expect(fetch(`${url}/v1/health`)).rejects.toThrow();
      expect(JSON.parse(served.stderr().trim())).toMatchObject({ message: "request", path: "/v1/health", status: 200 });
    },
  );

  test("says that the port is taken, and by which word to choose another", async () => {
    const { url } = await startTestServer();
    const { port } = new URL(url);
    const words = ["serve", "--port", port];
    const { code, out, err } = await runCli(words, { cwd: temporaryProject() });
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(new RegExp(`^port ${port} is taken; .*--port`));
    const byVariable = await runCli(["serve", "--json"], { cwd: temporaryProject(), env: { PORT: port } });
    expect(JSON.parse(byVariable.out)).toMatchObject({ ok: false, error: { code: "REQUEST_INVALID" } });
  });

  test.each(["x", "65536", "8787 ", "1e3", "-1"])("refuses the port %j", async (port) => {
    const ran = await runCli(["serve"], { cwd: temporaryProject(), env: { PORT: port } });
    expect(ran).toMatchObject({ code: 2, out: "" });
  });
});
