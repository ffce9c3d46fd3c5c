import {
  type ChangedTool,
  HealthReport,
  MODEL_FORMATS,
  type ToolEntry,
  ToolGroups,
} from "../../functions/contract/catalog.ts";
import { toVisible } from "../../functions/contract/printable.ts";
import { type Command, type CommandContext, printJson } from "./command.ts";
import { expectBody, expectOk } from "./expect-ok.ts";

/** Lists what may be called, and what could be. */
export const tools: Command = {
  name: "tools",
  usage: "",
  summary: "list the approved tools and what MCP servers offer, with refs ready to copy",
  details:
    `With --format (${MODEL_FORMATS.join(", ")}) it prints definitions to hand to a model. What MCP servers offer is ` +
    "known from the last refresh.",
  options: { format: { type: "string", value: "format", help: MODEL_FORMATS.join(", ") } },
  words: [0, 0],
  run: async (context) => {
    const client = await context.connect();
    const format = context.option("format");
    const query = format === undefined ? "" : `?format=${encodeURIComponent(format)}`;
    const answer = await context.during("listing tools", () => client.send("GET", `/v1/tools${query}`));
    if (context.json || format !== undefined) printJson(context, expectOk(answer));
    else context.print(formatGroups(expectBody(answer, ToolGroups)));
    return tellTrouble(context, expectBody(await client.send("GET", "/v1/health"), HealthReport));
  },
};

/** A tool that is missing because of its repository or its server should not look as if it had never been there. */
function tellTrouble(context: CommandContext, { repository, servers }: HealthReport): number {
  const troubles = [
    ...repository
      .filter(({ status }) => status === "refused")
      .map(({ name, reason }) => `repository ${name} is refused: ${reason}`),
    ...servers
      .filter(({ status }) => status !== "fresh")
      .map(
        ({ name, status, reason }) => `server ${name} ${TROUBLES[status]}: ${reason ?? "skillbroker refresh asks it"}`,
      ),
    ...servers.flatMap(({ name, quarantined }) =>
      quarantined.map((tool) => `server ${name} offers ${tool.name}, which is set aside: ${tool.reason}`),
    ),
  ];
  for (const trouble of troubles) context.printError(`${toVisible(trouble)}\n`);
  return troubles.length === 0 ? 0 : 1;
}

const TROUBLES = { fresh: "", stale: "does not give its list, the last good one stays", unlisted: "was never listed" };

function formatGroups(groups: ToolGroups): string {
  const sections = [
    { title: 'bundled (approved by "local")', lines: groups.bundled.map(toLine) },
    { title: "repository (approved by exact ref)", lines: groups.repository.map(toLine) },
    { title: "mcp (approved by exact ref)", lines: groups.mcp.map(toLine) },
    {
      title: 'offered by MCP servers, not approved: read it, then copy the line in quotes into "tools" of cdk.json',
      lines: groups.not_approved.map(toOfferedLine),
    },
    { title: "changed since they were approved, so not to be called", lines: groups.changed.map(toChangedLines) },
  ];
  return (
    sections
      .filter(({ lines }) => lines.length > 0)
      .map(({ title, lines }) => `${title}\n${toColumns(lines)}`)
      .join("\n") || 'Nothing is approved; list refs under "tools" in the context of cdk.json.\n'
  );
}

/** The approval below, as it stands in JSON: it is longer than a line has room for. */
function toOfferedLine(entry: ToolEntry): Line {
  const { ref, text } = toLine(entry);
  return { ref, text: `${text}\n      ${JSON.stringify(entry.approval ?? ref)}` };
}

type Line = { readonly ref: string; readonly text: string };

function toLine({ ref, description }: ToolEntry): Line {
  return { ref, text: firstSentence(description) };
}

function toColumns(lines: readonly Line[]): string {
  const width = Math.max(...lines.map(({ ref }) => ref.length)) + 2;
  return lines.map(({ ref, text }) => `  ${ref.padEnd(width)}${text}\n`).join("");
}

/** What was approved beside what is offered, one field after another. */
function toChangedLines({ approved, approval, differences }: ChangedTool): Line {
  const fields =
    differences === null
      ? ["      the approved definition was never offered here, so it cannot be shown"]
      : differences.flatMap(({ field, approved: before, offered: after }) => [
          `      ${field}`,
          `      - ${toVisible(JSON.stringify(before))}`,
          `      + ${toVisible(JSON.stringify(after))}`,
        ]);
  return { ref: approved, text: [`is offered as`, `      ${JSON.stringify(approval)}`, ...fields].join("\n") };
}

function firstSentence(text: string): string {
  const sentence = /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text;
  return toVisible(sentence.replace(/\s+/g, " "));
}
