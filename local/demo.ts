import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { JobReport } from "../functions/contract/job.ts";
import { firstCodePoints } from "../functions/contract/text.ts";
import { MAX_PDF_BODY } from "../functions/handlers/create-pdf.ts";
import { createJsonLog } from "../functions/wiring/json-log.ts";
import { createApiClient } from "./api-client.ts";
import { expectOk } from "./commands/expect-ok.ts";
import { saveArtifacts } from "./commands/save-artifacts.ts";
import { readProject } from "./project.ts";
import { startLocalServer } from "./server.ts";
import { realTimer } from "./timer.ts";

/** A tour: starts the service, runs jobs on real input, downloads and checks every file, says where they are, stops. */

const root = dirname(import.meta.dirname);
const readme = firstCodePoints(readFileSync(join(root, "README.md"), "utf8"), MAX_PDF_BODY);

const JOBS = [
  {
    what: "this README as a PDF",
    calls: [{ tool: "create_pdf@1", arguments: { title: "skillbroker", body: readme, filename: "README" } }],
  },
  {
    what: "a week's paperwork, five files in one job",
    calls: [
      {
        tool: "meeting_minutes@1",
        arguments: {
          title: "Release meeting",
          date: "2026-11-30",
          attendees: ["Ada", "Grace", "Łukasz"],
          discussion: [{ topic: "Date", notes: "Two blockers are open. Both have a fix in review." }],
          decisions: ["The release moves to Thursday."],
          actions: [{ what: "Merge the fixes", owner: "Grace", due: "Wednesday" }],
        },
      },
      {
        tool: "status_update@1",
        arguments: {
          title: "Search migration",
          period: "week 48",
          health: "at risk",
          summary: "Indexing is done; the cut-over waits for a certificate.",
          done: ["Reindexed 12 million documents", "Load test passed at twice the usual traffic"],
          risks: ["The certificate arrives late: the cut-over moves to Monday"],
          format: "pdf",
        },
      },
      {
        tool: "data_table@1",
        arguments: {
          columns: ["Region", "Units", "Remark"],
          rows: [
            ["North", 1200, "final"],
            ["South", 950, "=HYPERLINK(1)"],
          ],
          filename: "units",
        },
      },
      {
        tool: "calendar_event@1",
        arguments: { title: "Release", start: "2026-12-03T14:00", duration_minutes: 45, time_zone: "Europe/Paris" },
      },
      { tool: "make_plan@1", arguments: { goal: "Ship the release", steps: ["Merge the fixes", "Tag", "Announce"] } },
    ],
  },
] as const;

const data = mkdtempSync(join(tmpdir(), "skillbroker-demo-"));
const server = await startLocalServer({
  project: readProject(root),
  dataDirectory: data,
  port: 0,
  clock: () => Date.now(),
  timer: realTimer,
  log: createJsonLog(() => undefined),
  env: process.env,
  background: "none",
});
const client = createApiClient({ baseUrl: server.url });
try {
  console.log(`skillbroker is up at ${server.url}, its skills checked byte by byte against their pins\n`);
  for (const { what, calls } of JOBS) await show(what, calls);
  await showRefusal();
} finally {
  await server.close();
  rmSync(data, { recursive: true, force: true });
}
console.log("\nNext: npm start, or npx skillbroker --help");

async function show(what: string, calls: readonly object[]): Promise<void> {
  console.log(`POST /v1/jobs: ${what}`);
  const report = JobReport.parse(expectOk(await client.send("POST", "/v1/jobs", { calls })));
  if (calls.length === 1) console.log(JSON.stringify(report, undefined, 2));
  if (report.status !== "succeeded") throw new Error(`the job ${report.status}`);
  const saved = await saveArtifacts(report, client, join(root, "out", report.job_id));
  if (saved.length !== calls.length) throw new Error(`${calls.length} files expected, ${saved.length} saved`);
  for (const { path, size_bytes } of saved) {
    console.log(
      `  downloaded by its link, size and SHA-256 checked: ${relative(process.cwd(), path)} (${size_bytes} bytes)`,
    );
  }
  console.log("");
}

async function showRefusal(): Promise<void> {
  console.log("POST /v1/jobs: a job with a misspelt argument");
  const { status, body } = await client.send("POST", "/v1/jobs", {
    calls: [{ tool: "create_pdf@1", arguments: { body: "x", fliename: "a.pdf" } }],
  });
  console.log(`  refused with ${status}: ${JSON.stringify(body)}`);
  if (status !== 400) throw new Error("the job should have been refused");
}
