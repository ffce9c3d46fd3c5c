import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { JobReport } from "../../../functions/contract/job.ts";
import { runCli } from "../../kit/command-line.ts";
import { startTestServer, temporaryDirectory, temporaryProject } from "../../kit/local-service.ts";

async function ranJob(cwd: string): Promise<JobReport> {
  const given = '{"title":"Minutes","body":"We met."}';
  const { out } = await runCli(["run", "create_pdf@1", "--json", "--arguments", given, "--out", "first"], { cwd });
  return JobReport.parse(JSON.parse(out));
}

describe("jobs", () => {
  test("says that there are none, and how to make one", async () => {
    const ran = await runCli(["jobs"], { cwd: temporaryProject() });
    expect(ran).toMatchObject({ code: 0, err: "", out: "No jobs yet; skillbroker run makes one.\n" });
  });

  test("lists the newest first and how to go on", async () => {
    const cwd = temporaryProject();
    const [first, second] = [await ranJob(cwd), await ranJob(cwd)];
    const all = await runCli(["jobs"], { cwd });
    expect(all.out.split("\n").map((line) => line.split(" ")[0])).toEqual([second.job_id, first.job_id, ""]);
    expect(all.out).toMatch(/ 1 call, 1 file\n/);
    const page = await runCli(["jobs", "--limit", "1"], { cwd });
    expect(page.out).toMatch(new RegExp(`more: skillbroker jobs --after ${second.job_id}\n$`));
    const rest = await runCli(["jobs", "--after", second.job_id, "--json"], { cwd });
    expect(JSON.parse(rest.out)).toMatchObject({ jobs: [{ job_id: first.job_id }] });
  });

  test("shows one with its results and files", async () => {
    const cwd = temporaryProject();
    const { job_id } = await ranJob(cwd);
    const { code, out } = await runCli(["jobs", job_id], { cwd });
    expect(code).toBe(0);
    expect(out).toMatch(/c1 {2}create_pdf@1 {2}ok\n {2}a1 {2}Minutes\.pdf {2}application\/pdf {2}\d+ bytes\n$/);
  });

  test("saves the files of one again", async () => {
    const cwd = temporaryProject();
    const { job_id, artifacts } = await ranJob(cwd);
    const ran = await runCli(["jobs", job_id, "--out", "again", "--json"], { cwd });
    expect([ran.code, ran.err]).toEqual([0, ""]);
    expect(JSON.parse(ran.out)).toMatchObject({
      job_id,
      saved: [{ artifact_id: "a1", size_bytes: artifacts[0]?.size_bytes }],
    });
    expect(existsSync(join(cwd, "again/Minutes.pdf"))).toBe(true);
  });

  test("ends with 1 when a file that was to be saved is gone, and says so", async () => {
    const { url } = await startTestServer();
    const cwd = temporaryDirectory();
    const made = await runCli(["run", "create_pdf@1", "-a", '{"body":"x"}', "--json", "--endpoint", url], { cwd });
    const { job_id } = JobReport.parse(JSON.parse(made.out));
    await fetch(`${url}/v1/jobs/${job_id}/artifacts/a1`, { method: "DELETE" });
    const ran = await runCli(["jobs", job_id, "--out", "again", "--endpoint", url], { cwd });
    expect(ran.code).toBe(1);
    expect(ran.out).toMatch(/bytes, removed 2026-/);
    expect((await runCli(["jobs", job_id, "--endpoint", url], { cwd })).code).toBe(0);
  });

  test.each(["--wait", "--cancel", "--out"])("does not take %s for the list", async (word) => {
    const ran = await runCli(["jobs", word, ...(word === "--out" ? ["x"] : [])], { cwd: temporaryProject() });
    expect(ran).toMatchObject({ code: 2, out: "" });
    expect(ran.err).toContain("give its id");
  });

  test("does not cancel what has ended", async () => {
    const cwd = temporaryProject();
    const { job_id } = await ranJob(cwd);
    const ran = await runCli(["jobs", job_id, "--cancel"], { cwd });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toContain("(JOB_FINISHED)");
  });

  test.each([
    [["jobs", "zzz", "--cancel"], "JOB_NOT_FOUND"],
    [["jobs", "zzz", "--wait"], "JOB_NOT_FOUND"],
    [["jobs", "zzz"], "JOB_NOT_FOUND"],
    [["jobs", "../../health"], "JOB_NOT_FOUND"],
    [["jobs", "--limit", "0"], "REQUEST_INVALID"],
    [["jobs", "--after", "x"], "REQUEST_INVALID"],
  ])("refuses %j", async (words, code) => {
    const ran = await runCli(words, { cwd: temporaryProject() });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err.trim().split("\n")).toHaveLength(1);
    expect(ran.err).toContain(`(${code})`);
  });

  test("refuses a directory that cannot be written", async () => {
    const cwd = temporaryProject();
    const { job_id } = await ranJob(cwd);
    writeFileSync(join(cwd, "file"), "");
    const ran = await runCli(["jobs", job_id, "--out", "file"], { cwd });
    expect([ran.code, ran.out]).toEqual([1, ""]);
    expect(ran.err).toMatch(/cannot write into /);
  });
});
