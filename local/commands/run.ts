import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Fault } from "../../functions/contract/fault.ts";
import { JobReport } from "../../functions/contract/job.ts";
import { parseStrictJson } from "../../functions/contract/json.ts";
import { type Command, type CommandContext, printJson } from "./command.ts";
import { expectOk } from "./expect-ok.ts";
import { type SavedArtifact, saveArtifacts } from "./save-artifacts.ts";

const MAX_DEPTH = 64;

/** Runs one call as a job and saves the files it made. */
export const run: Command = {
  name: "run",
  usage: "<ref>",
  summary: "run one tool as a job and save the file it makes",
  details: `Example: skillbroker run create_pdf@1 --arguments '{"title":"Minutes","body":"We met."}' --out .`,
  options: {
    arguments: { type: "string", short: "a", value: "json", help: "arguments as JSON, @file, or - for standard input" },
    out: {
      type: "string",
      short: "o",
      value: "dir",
      help: "where files are saved; the current directory when left out",
    },
  },
  words: [1, 1],
  run: async (context) => {
    const [ref] = context.words;
    const call = { id: "c1", tool: ref, arguments: await readArguments(context) };
    const client = await context.connect();
    const report = JobReport.parse(expectOk(await client.send("POST", "/v1/jobs", { calls: [call] })));
    const saved = await saveArtifacts(report, client, resolve(context.cwd, context.option("out") ?? "."));
    if (context.json) printJson(context, { ...report, saved });
    else context.print(formatRun(report, saved));
    return report.status === "succeeded" ? 0 : 1;
  },
};

async function readArguments(context: CommandContext): Promise<unknown> {
  const given = context.option("arguments") ?? "{}";
  const parsed = parseStrictJson(await textOf(given, context), { maxDepth: MAX_DEPTH });
  if (!parsed.ok) throw new Fault("REQUEST_INVALID", `--arguments: ${parsed.fault.message}`);
  return parsed.value;
}

async function textOf(given: string, context: CommandContext): Promise<string> {
  if (given === "-") return context.readStdin();
  if (!given.startsWith("@")) return given;
  try {
    return readFileSync(resolve(context.cwd, given.slice(1)), "utf8");
  } catch (error) {
    throw new Fault("REQUEST_INVALID", `--arguments: cannot read ${given.slice(1)}`, { cause: error });
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
