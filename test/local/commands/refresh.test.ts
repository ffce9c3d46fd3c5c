import { describe, expect, test } from "vitest";
import { mcpRef, wholeApproval } from "../../../functions/contract/offered-tool.ts";
import { RefreshReport } from "../../../functions/contract/refresh.ts";
import { instructions } from "../../functions/catalog/catalogs.ts";
import { pinnedRoot } from "../../functions/repository/skills-on-disk.ts";
import { runCli } from "../../kit/command-line.ts";
import { aTool, serveMcp } from "../../kit/mcp-peers.ts";
import { projectWithServers } from "./mcp-project.ts";

const REF = mcpRef("s1", aTool("send"));

describe("refresh", () => {
  test("asks the servers, tells what changed by its refs, and keeps it for the next command", async () => {
    const server = await serveMcp({ tools: [aTool("send")] });
    const cwd = projectWithServers({ s1: { url: server.url } });
    const first = await runCli(["refresh"], { cwd });
    expect(first).toMatchObject({ code: 0, err: "" });
    expect(first.out).toMatch(
      /^generation 1, \S+, by request: refreshed: \d+, failed: 0, skipped: 0\n {2}s1: 1 tool\n/,
    );
    expect(first.out).toContain(`  added      ${REF}\n`);
    expect(first.progress[0]).toMatch(/asking MCP servers/);
    server.setTools([]);
    expect((await runCli(["refresh", "s1"], { cwd })).out).toContain(`  removed    ${REF}\n`);
    const last = await runCli(["refresh", "--last", "--json"], { cwd });
    expect(RefreshReport.parse(JSON.parse(last.out))).toMatchObject({ generation: 2, changes: { removed: [REF] } });
  });

  test("with --dry-run shows what would change and changes nothing", async () => {
    const server = await serveMcp({ tools: [aTool("send")] });
    const cwd = projectWithServers({ s1: { url: server.url } });
    expect((await runCli(["refresh", "--dry-run"], { cwd })).out).toMatch(/^would publish generation 1: /);
    const last = await runCli(["refresh", "--last"], { cwd });
    expect(last.out).toMatch(/^generation 0, as deployed/);
  });

  test("fails where a skill lacks a tool or a server does not answer, and names both", async () => {
    const server = await serveMcp({ tools: [aTool("other")] });
    const skills = pinnedRoot(instructions("acme/mail", { tools: ["s1/send"] }));
    const cwd = projectWithServers({ s1: { url: server.url }, s2: { url: "http://127.0.0.1:9/mcp" } }, { skills });
    const ran = await runCli(["refresh"], { cwd });
    expect(ran.code).toBe(1);
    expect(ran.out).toContain("  failed     acme/mail: missing tools: acme/mail: s1/send\n");
    expect(ran.out).toMatch(/ {2}s2: never listed, server "s2"/);
  });

  test.each([
    [["refresh", "s9"], 1, /REQUEST_INVALID/],
    [["refresh", "--last", "s1"], 2, /--last/],
    [["refresh", "--last", "--dry-run"], 2, /--last/],
  ])("%j is refused", async (words, code, reason) => {
    const ran = await runCli(words, { cwd: projectWithServers({ s1: { url: "http://127.0.0.1:9/mcp" } }) });
    expect(ran).toMatchObject({ code, out: "" });
    expect(ran.err).toMatch(reason);
  });
});

describe("tools", () => {
  test("shows what servers offer with refs to copy, then what was approved beside what is offered", async () => {
    const server = await serveMcp({ tools: [aTool("send")] });
    const servers = { s1: { url: server.url } };
    const offered = projectWithServers(servers);
    await runCli(["refresh"], { cwd: offered });
    const before = await runCli(["tools"], { cwd: offered });
    expect(before.code).toBe(0);
    const approval = wholeApproval("s1", aTool("send"));
    expect(before.out).toMatch(new RegExp(`not approved.*copy.*\n {2}${REF} {2}d\n {6}"${approval}"\n`));

    const approved = projectWithServers(servers, { tools: [approval] });
    await runCli(["refresh"], { cwd: approved });
    expect((await runCli(["tools"], { cwd: approved })).out).toMatch(new RegExp(`^mcp .*\n {2}${REF} {2}d\n$`));
    server.setTools([aTool("send", { description: "d\u001b[2J and more" })]);
    await runCli(["refresh"], { cwd: approved });
    const after = await runCli(["tools"], { cwd: approved });
    const changed = wholeApproval("s1", aTool("send", { description: "d\u001b[2J and more" }));
    expect(after.out).toContain(
      `  ${REF}  is offered as\n      "${changed}"\n      description\n      - "d"\n      + "d\\u001b[2J and more"\n`,
    );
  });

  test("says which server does not give its list, and which tool is set aside", async () => {
    const server = await serveMcp({ tools: [aTool("send"), aTool("no name")] });
    const cwd = projectWithServers({ s1: { url: server.url }, s2: { url: "http://127.0.0.1:9/mcp" } });
    await runCli(["refresh"], { cwd });
    const { code, err } = await runCli(["tools"], { cwd });
    expect(code).toBe(1);
    expect(err).toMatch(/^server s2 was never listed: server "s2".*\nserver s1 offers no name, which is set aside: /);
  });
});
