import { resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Fault } from "../../functions/contract/fault.ts";
import { type ArtifactReport, JobList, JobReport } from "../../functions/contract/job.ts";
import type { ApiClient } from "../api-client.ts";
import { type Command, type CommandContext, printJson, UsageError } from "./command.ts";
import { expectBody } from "./expect-ok.ts";
import { lastingReport } from "./lasting-report.ts";
import { type SavedArtifact, saveArtifacts } from "./save-artifacts.ts";

/** Lists jobs; shows one, waits for it, cancels it, or saves its files. */
export const jobs: Command = {
  name: "jobs",
  usage: "[job_id]",
  summary: "list your jobs, newest first; show one, wait for it, cancel it, or save its files",
  details: "Example: skillbroker jobs 7ybqaacxvsbmrafv2ztm3x2ve0 --out .",
  options: {
    limit: { type: "string", value: "n", help: "jobs to list, at most 100; 20 when left out" },
    after: { type: "string", value: "job_id", help: "list the jobs that are older than this one" },
    out: { type: "string", short: "o", value: "dir", help: "with a job id: save its files there" },
    wait: { type: "boolean", help: "with a job id: until the job has ended" },
    cancel: { type: "boolean", help: "with a job id: cancel the job" },
  },
  words: [0, 1],
  runsJobs: ({ flag }) => flag("wait"),
  run: async (context) => {
    const [jobId] = context.words;
    if (jobId === "") throw new UsageError("the job id is empty");
    const [misplaced] = (jobId === undefined ? ["out", "wait", "cancel"] : ["limit", "after"]).filter(
      (name) => context.option(name) !== undefined || context.flag(name),
    );
    if (misplaced !== undefined) {
      throw new UsageError(
        `--${misplaced} is for ${jobId === undefined ? "one job: give its id" : "the list of jobs"}`,
      );
    }
    return jobId === undefined ? listAll(context) : showOne(context, jobId);
  },
};

async function listAll(context: CommandContext): Promise<number> {
  const query = new URLSearchParams();
  for (const name of ["limit", "after"]) {
    const value = context.option(name);
    if (value !== undefined) query.set(name, value);
  }
  const client = await context.connect();
  const path = query.size === 0 ? "/v1/jobs" : `/v1/jobs?${query}`;
  const list = expectBody(await context.during("listing jobs", () => client.send("GET", path)), JobList);
  if (context.json) printJson(context, list);
  else context.print(formatList(list));
  return 0;
}

/** 1 when a file was to be saved that is no longer there, or the job that was waited for came to nothing. */
async function showOne(context: CommandContext, jobId: string): Promise<number> {
  const client = await context.connect();
  const path = `/v1/jobs/${encodeURIComponent(jobId)}`;
  if (context.flag("cancel")) return cancel(client, path, context);
  const report = context.flag("wait")
    ? await context.during(`waiting for job ${jobId}`, () => untilEnded(client, path))
    : expectBody(await client.send("GET", path), JobReport);
  const out = context.option("out");
  if (out === undefined) {
    if (context.json) printJson(context, lastingReport(report, context));
    else context.print(formatJob(report, []));
    return context.flag("wait") && report.status === "failed" ? 1 : 0;
  }
  const directory = resolve(context.cwd, out);
  const saved = await context.during("saving files", () => saveArtifacts(report, client, directory));
  if (context.json) printJson(context, { ...lastingReport(report, context), saved });
  else context.print(formatJob(report, saved));
  return saved.length === report.artifacts.length && report.status !== "failed" ? 0 : 1;
}

async function cancel(client: ApiClient, path: string, context: CommandContext): Promise<number> {
  const report = expectBody(await client.send("DELETE", path), JobReport);
  if (context.json) printJson(context, report);
  else context.print(`job ${report.job_id} cancelled\n`);
  return 0;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;

/** In a row; a service that is deployed or started anew is away for less. */
const MOST_FAILED_LOOKS = 12;

/** Ever less often: a job that is not done after a minute will not be done within the next second. */
async function untilEnded(client: ApiClient, path: string): Promise<JobReport> {
  let failed = 0;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)) {
    try {
      const report = expectBody(await client.send("GET", path), JobReport);
      if (report.finished_at !== undefined) return report;
      failed = 0;
    } catch (error) {
      failed += 1;
      if (!(error instanceof Fault) || error.remedy === "caller" || failed === MOST_FAILED_LOOKS) throw error;
    }
    await setTimeout(pause);
  }
}

function formatJob(report: JobReport, saved: readonly SavedArtifact[]): string {
  const results = report.results.map(
    (result) => `  ${result.call_id}  ${result.tool}  ${result.ok ? "ok" : `failed: ${result.error.message}`}`,
  );
  const files = report.artifacts.map(formatArtifact);
  const why = report.error === undefined ? "" : `: ${report.error.message} (${report.error.code})`;
  const lines = [`job ${report.job_id} ${report.status}${why}, created ${report.created_at}`, ...results, ...files];
  return `${[...lines, ...saved.map(({ path }) => `saved ${path}`)].join("\n")}\n`;
}

function formatArtifact({ artifact_id, name, media_type, size_bytes, url, deleted_at }: ArtifactReport): string {
  const gone = deleted_at === undefined ? "expired" : `removed ${deleted_at}`;
  return `  ${artifact_id}  ${name}  ${media_type}  ${size_bytes} bytes${url === undefined ? `, ${gone}` : ""}`;
}

function formatList({ jobs: listed, next }: JobList): string {
  if (listed.length === 0) return "No jobs yet; skillbroker run makes one.\n";
  const lines = listed.map(({ job_id, status, created_at, calls, artifacts }) =>
    [job_id, status.padEnd(9), created_at, `${counted(calls, "call")}, ${counted(artifacts, "file")}`].join("  "),
  );
  const more = next === undefined ? [] : [`more: skillbroker jobs --after ${next}`];
  return `${[...lines, ...more].join("\n")}\n`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
