import { resolve } from "node:path";
import { JobList, JobReport } from "../../functions/contract/job.ts";
import { type Command, type CommandContext, printJson } from "./command.ts";
import { expectOk } from "./expect-ok.ts";
import { saveArtifacts } from "./save-artifacts.ts";

/** Lists jobs, or shows one and saves its files. */
export const jobs: Command = {
  name: "jobs",
  usage: "[job_id]",
  summary: "list your jobs, newest first, or show one and save its files",
  details: "",
  options: {
    limit: { type: "string", value: "n", help: "jobs to list, at most 100; 20 when left out" },
    after: { type: "string", value: "job_id", help: "list the jobs before this one" },
    out: { type: "string", short: "o", value: "dir", help: "with a job id: save its files there" },
  },
  words: [0, 1],
  run: async (context) => {
    const [jobId] = context.words;
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
  const list = JobList.parse(expectOk(await client.send("GET", `/v1/jobs?${query}`)));
  if (context.json) printJson(context, list);
  else context.print(formatList(list));
  return 0;
}

async function showOne(context: CommandContext, jobId: string): Promise<number> {
  const client = await context.connect();
  const report = JobReport.parse(expectOk(await client.send("GET", `/v1/jobs/${encodeURIComponent(jobId)}`)));
  const out = context.option("out");
  const saved = out === undefined ? [] : await saveArtifacts(report, client, resolve(context.cwd, out));
  if (context.json) {
    printJson(context, out === undefined ? report : { ...report, saved });
    return 0;
  }
  const files = report.artifacts.map(({ artifact_id, name, media_type, size_bytes, url, deleted_at }) => {
    const state = deleted_at !== undefined ? ` removed ${deleted_at}` : url === undefined ? " expired" : "";
    return `  ${artifact_id}  ${name}  ${media_type}  ${size_bytes} bytes${state}`;
  });
  const results = report.results.map(
    (result) => `  ${result.call_id}  ${result.tool}  ${result.ok ? "ok" : result.error.message}`,
  );
  const lines = [`job ${report.job_id} ${report.status}, created ${report.created_at}`, ...results, ...files];
  context.print(`${[...lines, ...saved.map(({ path }) => `saved ${path}`)].join("\n")}\n`);
  return 0;
}

function formatList({ jobs: listed, next }: JobList): string {
  if (listed.length === 0) return "No jobs yet; skillbroker run makes one.\n";
  const lines = listed.map(
    ({ job_id, status, created_at, calls, artifacts }) =>
      `${job_id}  ${status.padEnd(9)}  ${created_at}  ${calls} calls, ${artifacts} files`,
  );
  const more = next === undefined ? [] : [`more: skillbroker jobs --after ${next}`];
  return `${[...lines, ...more].join("\n")}\n`;
}
