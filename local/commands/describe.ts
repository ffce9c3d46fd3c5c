import { SkillDetail, ToolGroups } from "../../functions/contract/catalog.ts";
import { Fault } from "../../functions/contract/fault.ts";
import { quoted, toVisibleLines } from "../../functions/contract/printable.ts";
import { SKILL_HANDLERS } from "../../functions/handlers/table.ts";
import { describeSkillRepository } from "../../functions/repository/describe.ts";
import { loadRepositories } from "../../functions/repository/load.ts";
import { DIRECTORY_NAME } from "../../functions/repository/pins.ts";
import { readPinsFile } from "../../functions/repository/pins-file.ts";
import { type Command, type CommandContext, printJson } from "./command.ts";
import { expectBody } from "./expect-ok.ts";

/** Shows the repositories, one skill or one tool, for reading before approving. */
export const describe: Command = {
  name: "describe",
  usage: "[namespace/skill | ref]",
  summary: "show what an operator reads before approving",
  details: "Without a name: every repository with its skills, refs and digests. With one: a skill or a tool in full.",
  options: {},
  words: [0, 1],
  run: async (context) => {
    const [name] = context.words;
    if (name === undefined) return describeRepositories(context);
    return name.includes("@") ? describeTool(context, name) : describeSkill(context, name);
  },
};

async function describeRepositories(context: CommandContext): Promise<number> {
  const { skillsRoot, settings } = context.project();
  const pins = () => readPinsFile(skillsRoot);
  const statuses = loadRepositories({
    root: skillsRoot,
    pins,
    handlers: SKILL_HANDLERS,
    wanted: settings.repositories,
  });
  if (context.json) printJson(context, { repositories: statuses.map(toJson) });
  else context.print(describeSkillRepository(statuses));
  return statuses.every(({ status }) => status === "loaded") ? 0 : 1;
}

function toJson(status: ReturnType<typeof loadRepositories>[number]): unknown {
  if (status.status === "refused") return status;
  const skills = status.skills.map(({ name, description, callable, digest }) => ({
    name,
    description,
    ref: callable?.ref,
    digest,
  }));
  return { ...status, skills };
}

async function describeSkill(context: CommandContext, name: string): Promise<number> {
  const segments = name.split("/");
  if (segments.length !== 2 || !segments.every((segment) => DIRECTORY_NAME.test(segment)))
    throw new Fault("SKILL_NOT_FOUND", `${quoted(name)} is no skill's full name; namespace/skill wanted`);
  const client = await context.connect();
  const skill = expectBody(await client.send("GET", `/v1/skills/${name}`), SkillDetail);
  if (context.json) printJson(context, skill);
  else context.print(toVisibleLines(formatSkill(skill)));
  return 0;
}

function formatSkill(skill: SkillDetail): string {
  const state =
    skill.ref === undefined ? "instructions only" : `${skill.ref}, ${skill.approved ? "approved" : "not approved"}`;
  const uses = skill.tool_set.map(
    ({ ref, via, approved }) => `  ${ref}  by ${via.join(" → ")}${approved ? "" : "  (not approved)"}`,
  );
  const problems = skill.problems.map((problem) => `  ! ${problem}`);
  return [
    `${skill.name} (${state})`,
    skill.description,
    "",
    `digest ${skill.digest}`,
    ...skill.files.map(({ path, sha256, size }) => `  ${sha256.slice(0, 12)}  ${String(size).padStart(7)}  ${path}`),
    ...(uses.length === 0 ? [] : ["", "tool set", ...uses]),
    ...(problems.length === 0 ? [] : ["", "problems", ...problems]),
    "",
    skill.instructions.trimEnd(),
    "",
  ].join("\n");
}

async function describeTool(context: CommandContext, ref: string): Promise<number> {
  const client = await context.connect();
  const { bundled, repository, mcp } = expectBody(await client.send("GET", "/v1/tools"), ToolGroups);
  const tool = [...bundled, ...repository, ...mcp].find((each) => each.ref === ref);
  if (tool === undefined)
    throw new Fault("TOOL_UNKNOWN", `no approved tool is called ${ref}; skillbroker tools lists them`);
  if (context.json) printJson(context, tool);
  else {
    const schema = JSON.stringify(tool.input_schema, undefined, 2);
    const text = `${tool.ref} (${tool.origin})\n${tool.description}\n\ndigest ${tool.digest}\narguments ${schema}\n`;
    context.print(toVisibleLines(text));
  }
  return 0;
}
