import { HealthReport, MODEL_FORMATS, ToolGroups } from "../../functions/contract/catalog.ts";
import { toVisible } from "../../functions/contract/printable.ts";
import { type Command, type CommandContext, printJson } from "./command.ts";
import { expectBody, expectOk } from "./expect-ok.ts";

/** Lists what may be called. */
export const tools: Command = {
  name: "tools",
  usage: "",
  summary: "list the approved tools, with refs ready to copy",
  details: `With --format (${MODEL_FORMATS.join(", ")}) it prints definitions to hand to a model.`,
  options: { format: { type: "string", value: "format", help: MODEL_FORMATS.join(", ") } },
  words: [0, 0],
  run: async (context) => {
    const client = await context.connect();
    const format = context.option("format");
    const query = format === undefined ? "" : `?format=${encodeURIComponent(format)}`;
    const answer = await context.during("listing tools", () => client.send("GET", `/v1/tools${query}`));
    if (context.json || format !== undefined) printJson(context, expectOk(answer));
    else context.print(formatGroups(expectBody(answer, ToolGroups)));
    return tellRefused(context, expectBody(await client.send("GET", "/v1/health"), HealthReport));
  },
};

/** A tool that is missing because its repository is refused should not look as if it had never been there. */
function tellRefused(context: CommandContext, { repository }: HealthReport): number {
  const refused = repository.filter(({ status }) => status === "refused");
  for (const { name, reason } of refused) context.printError(`repository ${name} is refused: ${reason}\n`);
  return refused.length === 0 ? 0 : 1;
}

function formatGroups(groups: ToolGroups): string {
  const sections = [
    { title: 'bundled (approved by "local")', entries: groups.bundled },
    { title: "repository (approved by exact ref)", entries: groups.repository },
    { title: "mcp (approved by exact ref)", entries: groups.mcp },
  ];
  return (
    sections
      .filter(({ entries }) => entries.length > 0)
      .map(({ title, entries }) => {
        const width = Math.max(...entries.map(({ ref }) => ref.length)) + 2;
        const lines = entries.map(({ ref, description }) => `  ${ref.padEnd(width)}${firstSentence(description)}`);
        return `${title}\n${lines.join("\n")}\n`;
      })
      .join("\n") || 'Nothing is approved; list refs under "tools" in the context of cdk.json.\n'
  );
}

function firstSentence(text: string): string {
  const sentence = /^.*?[.!?](?=\s|$)/s.exec(text)?.[0] ?? text;
  return toVisible(sentence.replace(/\s+/g, " "));
}
