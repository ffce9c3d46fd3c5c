import { RefreshReport, type ServerHealth } from "../../functions/contract/refresh.ts";
import { type Command, type CommandContext, printJson, UsageError } from "./command.ts";
import { expectBody } from "./expect-ok.ts";

/** Fetches the lists of MCP servers and publishes the catalog that they make. */
export const refresh: Command = {
  name: "refresh",
  usage: "[server …]",
  summary: "fetch MCP servers' tools now and publish the catalog",
  details:
    "Without a name all servers are asked. The exit code is 0 only when every server answered and every skill has its " +
    "tools. Example: skillbroker refresh github --dry-run",
  options: {
    "dry-run": { type: "boolean", help: "show what would change, publish nothing" },
    last: { type: "boolean", help: "show the last refresh instead of asking for one" },
  },
  words: [0, 100],
  run: async (context) => {
    if (context.flag("last") && (context.flag("dry-run") || context.words.length > 0)) {
      throw new UsageError("--last shows what was; it takes neither servers nor --dry-run");
    }
    const report = context.flag("last") ? await askLast(context) : await askNow(context);
    if (context.json) printJson(context, report);
    else context.print(formatReport(report));
    return report.total_failed === 0 && report.servers.every(({ status }) => status === "fresh") ? 0 : 1;
  },
};

async function askLast(context: CommandContext): Promise<RefreshReport> {
  const client = await context.connect();
  return expectBody(await client.send("GET", "/v1/refreshes/latest"), RefreshReport);
}

async function askNow(context: CommandContext): Promise<RefreshReport> {
  const servers = context.words.length === 0 ? {} : { servers: context.words };
  const client = await context.connect();
  const body = { ...servers, dry_run: context.flag("dry-run") };
  return expectBody(
    await context.during("asking MCP servers for their tools", () => client.send("POST", "/v1/refreshes", body)),
    RefreshReport,
  );
}

function formatReport(report: RefreshReport): string {
  const { added, removed, changed } = report.changes;
  const lines = [
    headline(report),
    ...report.servers.map(formatServer),
    ...report.servers.flatMap(({ name, quarantined }) =>
      quarantined.map(({ name: tool, reason }) => `  set aside  ${name}/${tool}: ${reason}`),
    ),
    ...added.map((ref) => `  added      ${ref}`),
    ...removed.map((ref) => `  removed    ${ref}`),
    ...changed.map(({ from, to }) => `  changed    ${from} is ${to}`),
    ...Object.entries(report.failed).map(([skill, reason]) => `  failed     ${skill}: ${reason}`),
    ...report.skipped.map(
      (skill) => `  skipped    ${skill}: a server that it needs could not be asked; it keeps its tools`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function headline({ generation, dry_run, refreshed_at, cause, summary }: RefreshReport): string {
  if (dry_run) return `would publish generation ${generation}: ${summary}`;
  if (refreshed_at === null) return `generation 0, as deployed; nothing was refreshed yet: ${summary}`;
  return `generation ${generation}, ${refreshed_at}, by ${cause.type}: ${summary}`;
}

function formatServer({ name, status, tools, age_seconds, reason }: ServerHealth): string {
  const count = `${tools} tool${tools === 1 ? "" : "s"}`;
  if (status === "fresh") return `  ${name}: ${count}`;
  if (status === "unlisted") return `  ${name}: never listed${reason === null ? "" : `, ${reason}`}`;
  return `  ${name}: ${count}, ${age_seconds} s old, since ${reason}`;
}
