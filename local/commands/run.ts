import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Fault } from "../../functions/contract/fault.ts";
import { JobReport } from "../../functions/contract/job.ts";
import { parseStrictJson } from "../../functions/contract/json.ts";
import type { ApiClient } from "../api-client.ts";
import { type Command, type CommandContext, printJson, UsageError } from "./command.ts";
import { expectBody } from "./expect-ok.ts";
import { lastingReport } from "./lasting-report.ts";
import { makeDirectory, type SavedArtifact, saveArtifacts } from "./save-artifacts.ts";

const MAX_DEPTH = 64;

/** Runs one call as a job and saves the files it made. */
export const run: Command = {
  name: "run",
  usage: "<ref>",
  summary: "run one tool as a job and save the file it makes",
  details: `Example: skillbroker run create_pdf@1 --arguments '{"title":"Minutes","body":"We met."}' --out .`,
  options: {
    arguments: { type: "string", short: "a", value: "json", help: "arguments as JSON, @file, or - for standard input" },
    out: { type: "string", short: "o", value: "dir", help: "where files are saved; here when left out" },
    async: {
      type: "boolean",
      help: "queue the job and do not wait for it; `jobs <job_id> --wait` fetches what it makes",
    },
    key: { type: "string", value: "text", help: "Idempotency-Key: the same again makes no second job" },
  },
  words: [1, 1],
  run: async (context) => {
    const [ref = ""] = context.words;
    const call = { id: "c1", tool: ref, arguments: await readArguments(context) };
    if (context.flag("async")) return queue(call, context);
    const directory = resolve(context.cwd, context.option("out") ?? ".");
    // Before the job, so that a mistyped directory costs no run.
    makeDirectory(directory);
    const client = await context.connect();
    const sending = () => client.send("POST", "/v1/jobs", { calls: [call] }, keyHeader(context));
    const report = expectBody(await context.during(`running ${ref}`, sending), JobReport);
    const saved = await context.during("saving files", () => save(report, client, directory));
    if (context.json) printJson(context, { ...lastingReport(report, context), saved });
    else context.print(formatRun(report, saved));
    return report.status === "succeeded" ? 0 : 1;
  },
};

async function queue(call: unknown, context: CommandContext): Promise<number> {
  if (context.option("out") !== undefined) throw new UsageError("--out is for a job that is waited for");
  const client = await context.connect();
  const headers = { ...keyHeader(context), prefer: "respond-async" };
  const report = expectBody(await client.send("POST", "/v1/jobs", { calls: [call] }, headers), JobReport);
  if (context.json) printJson(context, report);
  else context.print(`job ${report.job_id} ${report.status}\nnext: skillbroker jobs ${report.job_id} --wait --out .\n`);
  return 0;
}

function keyHeader(context: CommandContext): Readonly<Record<string, string>> {
  const key = context.option("key");
  if (key === undefined) return {};
  // A header could not carry it, and the reason would be about bytes.
  if (!/^[\x20-\x7e]+$/.test(key)) throw new UsageError("--key: printable ASCII characters expected, such as a UUID");
  return { "idempotency-key": key };
}

/** The job has run and is kept: whoever reads the failure must learn how to get at its files. */
async function save(report: JobReport, client: ApiClient, directory: string): Promise<readonly SavedArtifact[]> {
  try {
    return await saveArtifacts(report, client, directory);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const advice = `the job ran; fetch its files with: skillbroker jobs ${report.job_id} --out <dir>`;
    throw new Fault(error.code, `${error.message}\n${advice}`, { cause: error });
  }
}

async function readArguments(context: CommandContext): Promise<unknown> {
  const given = context.option("arguments") ?? "{}";
  const parsed = parseStrictJson(await textOf(given, context), { maxDepth: MAX_DEPTH });
  if (!parsed.ok) throw new Fault("REQUEST_INVALID", `--arguments: ${parsed.fault.message}`);
  return parsed.value;
}

async function textOf(given: string, context: CommandContext): Promise<string> {
  if (given === "-") return context.readStdin();
  return given.startsWith("@") ? readText(given.slice(1), context.cwd) : given;
}

function readText(file: string, cwd: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(resolve(cwd, file)));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const reason = code === "ENOENT" ? "there is no such file" : String(code ?? "unknown reason");
    const why = code === "ERR_ENCODING_INVALID_ENCODED_DATA" ? "it is not UTF-8" : reason;
    throw new Fault("REQUEST_INVALID", `--arguments: cannot read ${file}: ${why}`, { cause: error });
  }
}

function formatRun(report: JobReport, saved: readonly SavedArtifact[]): string {
  const results = report.results.map((result) =>
    result.ok
      ? `${result.tool} ${JSON.stringify(result.output)}`
      : `${result.tool} failed: ${result.error.message} (${result.error.code})`,
  );
  const files = saved.map(({ path, size_bytes }) => `saved ${path} (${size_bytes} bytes, digest checked)`);
  return `${[`job ${report.job_id} ${report.status}`, ...results, ...files].join("\n")}\n`;
}
