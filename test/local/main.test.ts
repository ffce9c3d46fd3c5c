import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startCommand } from "../kit/child-command.ts";
import { temporaryProject } from "../kit/local-service.ts";

describe("the program", () => {
  test("ends as it would have when its reader goes away, without a word", async () => {
    const listing = startCommand(["tools", "--json"], { cwd: temporaryProject() });
    listing.process.stdout?.destroy();
    expect(await listing.ended).toEqual({ code: 0, signal: null });
    expect(listing.stderr()).toBe("");
  });

  test("reads arguments from standard input and writes nothing on its error stream when that is no terminal", async () => {
    const cwd = temporaryProject();
    const running = startCommand(["run", "create_pdf@1", "--arguments", "-"], { cwd });
    running.process.stdin?.end('{"title":"Ümlaut","body":"We met."}');
    expect(await running.ended).toEqual({ code: 0, signal: null });
    expect(running.stderr()).toBe("");
    expect(readFileSync(join(cwd, "Ümlaut.pdf"), "latin1")).toMatch(/^%PDF-/);
  });

  test("refuses standard input that is not UTF-8", async () => {
    const running = startCommand(["run", "create_pdf@1", "--arguments", "-"], { cwd: temporaryProject() });
    running.process.stdin?.end(Buffer.from('{"body":"\xe9"}', "latin1"));
    expect(await running.ended).toEqual({ code: 1, signal: null });
    expect(running.stderr()).toBe("standard input is not UTF-8 (REQUEST_INVALID)\n");
  });

  test.each([
    [["nope"], 2],
    [["jobs", "zzz"], 1],
  ])("ends with the command's own exit code: %j", async (words, code) => {
    expect(await startCommand(words, { cwd: temporaryProject() }).ended).toEqual({ code, signal: null });
  });
});
