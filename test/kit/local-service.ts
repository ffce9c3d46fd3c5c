import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Log } from "../../functions/contract/ports.ts";
import { readProject } from "../../local/project.ts";
import { type LocalServer, startLocalServer } from "../../local/server.ts";
import { realTimer } from "../../local/timer.ts";
import { type Logged, SKILLS_ROOT } from "./http-events.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";

/** A directory that goes when the test is over. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "skillbroker-test-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A project of its own over the skills that ship with the product. */
export function temporaryProject(context: Readonly<Record<string, unknown>> = { tools: ["local"] }): string {
  const root = temporaryDirectory();
  writeFileSync(join(root, "cdk.json"), JSON.stringify({ context: { skills: SKILLS_ROOT, ...context } }));
  return root;
}

export type LocalService = LocalServer & { readonly clock: ManualClock; readonly logged: readonly Logged[] };

export type TestServerOptions = { readonly requestTimeoutMs?: number };

/** A local server on a free port that closes when the test is over. */
export async function startTestServer(options: TestServerOptions = {}): Promise<LocalService> {
  const root = temporaryProject();
  const clock = createManualClock(Date.parse("2026-11-30T12:00:00Z"));
  const logged: Logged[] = [];
  const log: Log = (level, message, fields = {}) => logged.push({ level, message, fields: { ...fields } });
  const dataDirectory = join(root, ".skillbroker");
  const server = await startLocalServer({
    project: readProject(root),
    dataDirectory,
    port: 0,
    clock: clock.now,
    timer: realTimer,
    env: {},
    background: "none",
    log,
    ...options,
  });
  onTestFinished(() => server.close());
  return { ...server, clock, logged };
}
