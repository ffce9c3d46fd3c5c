import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { JobList, JobReport } from "../../functions/contract/job.ts";
import { startCommand } from "../kit/child-command.ts";
import { runCli } from "../kit/command-line.ts";
import { temporaryProject } from "../kit/local-service.ts";

/** Asynchronous jobs on the running service, a process of its own. */

const PATIENCE = { timeout: 20_000, interval: 20 };
const PDF = { tool: "create_pdf@1", arguments: { title: "Minutes", body: "We met.\n".repeat(1_000) } };

async function serve(cwd: string) {
  const child = startCommand(["serve", "--port", "0", "--json"], { cwd });
  const { url } = JSON.parse(await child.until(/\}\n/));
  const ask = async (method: string, path: string, init: RequestInit = {}) => {
    const answer = await fetch(`${url}${path}`, { method, ...init });
    const body: unknown = await answer.json();
    return { status: answer.status, body };
  };
  return {
    url: String(url),
    child,
    ask,
    post: (job: unknown, headers: Readonly<Record<string, string>>) =>
      ask("POST", "/v1/jobs", {
        body: JSON.stringify(job),
        headers: { "content-type": "application/json", ...headers },
      }),
    report: async (jobId: string) => JobReport.parse((await ask("GET", `/v1/jobs/${jobId}`)).body),
  };
}

test("a job that is queued by the command is run by the service, and its file fetched by the command", async () => {
  const cwd = temporaryProject();
  const { url } = await serve(cwd);
  const words = ["run", "create_pdf@1", "--arguments", '{"title":"Minutes","body":"We met."}'];
  const queued = await runCli([...words, "--async", "--key", "k1", "--endpoint", url], { cwd });
  expect(queued).toMatchObject({ code: 0, err: "" });
  const [, jobId = ""] = /^job (\w+) queued\nnext: skillbroker jobs \1 --wait --out \.\n$/.exec(queued.out) ?? [];
  const waited = await runCli(["jobs", jobId, "--wait", "--out", "got", "--endpoint", url], { cwd });
  expect(waited).toMatchObject({ code: 0, err: "" });
  expect(readFileSync(join(cwd, "got/Minutes.pdf")).subarray(0, 5).toString()).toBe("%PDF-");
  const again = await runCli([...words, "--async", "--key", "k1", "--endpoint", url, "--json"], { cwd });
  expect(JSON.parse(again.out)).toMatchObject({ job_id: jobId, status: "succeeded" });
});

test("a job that waits in the queue is cancelled by the command, and stays so when the service starts", async () => {
  const cwd = temporaryProject();
  const words = ["run", "create_pdf@1", "--arguments", '{"body":"We met."}', "--async", "--json"];
  const { job_id } = JSON.parse((await runCli(words, { cwd })).out);
  const cancelled = await runCli(["jobs", job_id, "--cancel"], { cwd });
  expect(cancelled).toMatchObject({ code: 0, out: `job ${job_id} cancelled\n` });
  const service = await serve(cwd);
  const { body } = await service.post({ calls: [PDF] }, { prefer: "respond-async" });
  const other = JobReport.parse(body);
  await expect.poll(async () => (await service.report(other.job_id)).status, PATIENCE).toBe("succeeded");
  expect(await service.report(job_id)).toMatchObject({ status: "failed", error: { code: "JOB_CANCELLED" } });
});

describe("a service that is killed while it works on jobs", () => {
  test("ends each of them once after its next start, with the files that it would have had", async () => {
    const cwd = temporaryProject();
    let service = await serve(cwd);
    const job = { calls: [PDF, PDF, PDF] };
    const ids = new Set<string>();
    for (let index = 0; index < 12; index += 1) {
      const key = { prefer: "respond-async", "idempotency-key": `k${index}` };
      // The client does what a client does: it asks again until it has an answer.
      for (let answered = false; !answered; ) {
        const answer = await service.post(job, key).catch(() => undefined);
        answered = answer?.status === 202;
        if (answer !== undefined && answered) ids.add(JobReport.parse(answer.body).job_id);
        if (answered && index % 4 !== 3) continue;
        service.child.process.kill("SIGKILL");
        await service.child.ended;
        service = await serve(cwd);
      }
    }
    expect(ids.size).toBe(12);
    const statuses = async () =>
      new Set(await Promise.all([...ids].map(async (id) => (await service.report(id)).status)));
    await expect.poll(statuses, { ...PATIENCE, timeout: 40_000 }).toEqual(new Set(["succeeded"]));
    const list = JobList.parse((await service.ask("GET", "/v1/jobs?limit=100")).body);
    expect(list.jobs).toHaveLength(12);
    const digests = new Set<string>();
    for (const id of ids) {
      const { artifacts } = await service.report(id);
      expect(artifacts).toHaveLength(3);
      for (const { sha256, url = "" } of artifacts) {
        digests.add(sha256);
        expect((await fetch(url)).status).toBe(200);
      }
    }
    expect(digests.size).toBe(1);
  });
});

test("other requests are answered while many jobs are worked on", async () => {
  const cwd = temporaryProject();
  const service = await serve(cwd);
  const job = { calls: Array.from({ length: 16 }, () => PDF) };
  const posted = await Promise.all(Array.from({ length: 40 }, () => service.post(job, { prefer: "respond-async" })));
  expect(new Set(posted.map(({ status }) => status))).toEqual(new Set([202]));
  let answered = 0;
  const statuses = async () => {
    const { body } = await service.ask("GET", "/v1/jobs?limit=100");
    answered += 1;
    return JobList.parse(body).jobs.filter(({ status }) => status === "succeeded").length;
  };
  await expect.poll(statuses, { timeout: 40_000, interval: 1 }).toBe(40);
  // Were they worked off in one go, the first answer would be the last.
  expect(answered).toBeGreaterThan(5);
});

test("a job that waits is run by the command that waits for it, when no service runs", async () => {
  const cwd = temporaryProject();
  const words = ["run", "create_pdf@1", "--arguments", '{"title":"Minutes","body":"We met."}', "--async", "--json"];
  const { job_id } = JSON.parse((await runCli(words, { cwd })).out);
  const waited = await runCli(["jobs", job_id, "--wait", "--out", "got"], { cwd });
  expect(waited).toMatchObject({ code: 0, err: "" });
  expect(readFileSync(join(cwd, "got/Minutes.pdf")).subarray(0, 5).toString()).toBe("%PDF-");
});

test("waiting for a job that fails fails", async () => {
  const cwd = temporaryProject();
  const words = ["run", "create_pdf@1", "--arguments", '{"filename":7}', "--async", "--json"];
  const { job_id } = JSON.parse((await runCli(words, { cwd })).out);
  expect((await runCli(["jobs", job_id, "--wait"], { cwd })).code).toBe(1);
});
