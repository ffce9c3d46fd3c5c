import * as z from "zod";
import { ServerHealth } from "./refresh.ts";

/** Tools, skills and health as the API shows them. */

const JsonSchemaObject = z.record(z.string(), z.unknown());

export const ToolEntry = z
  .object({
    ref: z.string(),
    kind: z.enum(["tool", "skill"]),
    origin: z.string(),
    description: z.string(),
    input_schema: JsonSchemaObject,
    output_schema: JsonSchemaObject.optional(),
    digest: z.string(),
    approval: z
      .string()
      .optional()
      .meta({ description: 'of a lent tool: what approves this very definition in "tools" of cdk.json' }),
  })
  .meta({ id: "Tool" });
export type ToolEntry = z.infer<typeof ToolEntry>;

/** A tool whose approved definition is not the one that its server offers. */
export const ChangedTool = z
  .object({
    tool: z.string().meta({ description: "server/tool" }),
    approved: z.string().meta({ description: "the approved ref" }),
    offered: z.string().meta({ description: "the ref of what is offered" }),
    approval: z.string().meta({ description: 'what approves the offered definition in "tools" of cdk.json' }),
    differences: z
      .array(z.object({ field: z.string(), approved: z.unknown(), offered: z.unknown() }))
      .nullable()
      .meta({ description: "null when the approved definition was never offered here" }),
  })
  .meta({ id: "ChangedTool" });
export type ChangedTool = z.infer<typeof ChangedTool>;

/** Approved tools, by where they come from; then what servers offer beyond that, for the operator to decide on. */
export const ToolGroups = z
  .object({
    bundled: z.array(ToolEntry),
    repository: z.array(ToolEntry),
    mcp: z.array(ToolEntry),
    not_approved: z.array(ToolEntry).meta({ description: "offered by MCP servers, not to be called" }),
    changed: z.array(ChangedTool),
  })
  .meta({ id: "ToolGroups" });
export type ToolGroups = z.infer<typeof ToolGroups>;

export const MODEL_FORMATS = ["mcp", "anthropic", "openai"] as const;
export type ModelFormat = (typeof MODEL_FORMATS)[number];

/** Definitions ready to hand to a model, and which ref each model-facing name stands for. */
export const ModelTools = z
  .object({ tools: z.array(z.record(z.string(), z.unknown())), refs: z.record(z.string(), z.string()) })
  .meta({ id: "ModelTools" });
export type ModelTools = z.infer<typeof ModelTools>;

export const ToolsQuery = z.strictObject({ format: z.enum(MODEL_FORMATS).optional() });
export type ToolsQuery = z.infer<typeof ToolsQuery>;

const SkillSummaryShape = {
  name: z.string(),
  description: z.string(),
  origin: z.string(),
  digest: z.string(),
  ref: z.string().optional().meta({ description: "exact ref, when the skill can be called" }),
  approved: z.boolean().meta({ description: "whether the operator approved the ref" }),
};

export const SkillSummary = z.object(SkillSummaryShape).meta({ id: "SkillSummary" });
export type SkillSummary = z.infer<typeof SkillSummary>;

export const SkillList = z.object({ skills: z.array(SkillSummary) }).meta({ id: "SkillList" });

export const SkillDetail = z
  .object({
    ...SkillSummaryShape,
    license: z.string().optional(),
    compatibility: z.string().optional(),
    metadata: z.record(z.string(), z.string()),
    instructions: z.string(),
    input_schema: JsonSchemaObject.optional(),
    files: z.array(z.object({ path: z.string(), sha256: z.string(), size: z.int() })),
    includes: z.array(z.string()),
    tool_set: z
      .array(
        z.object({
          ref: z.string(),
          via: z.array(z.string()).meta({ description: "skills from this one to the one that names the tool" }),
          origin: z.string().nullable().meta({ description: "who provides it: builtin, a repository, an MCP server" }),
          state: z.enum(["present", "absent", "unknown", "changed"]),
          exact_ref: z.string().nullable().meta({ description: "what is to be called; null when that is not known" }),
          approved: z.boolean(),
          served: z.boolean().meta({ description: "whether a job gets it by naming the skill in allowed_skills" }),
        }),
      )
      .meta({ description: "own and included tools, flattened" }),
    problems: z.array(z.string()).meta({ description: "why the tool set is not complete; empty when it is" }),
    last_refresh: z
      .object({ outcome: z.enum(["refreshed", "failed", "skipped"]), message: z.string().optional() })
      .meta({ description: "what the last refresh, the one at the start included, came to for this skill" }),
  })
  .meta({ id: "Skill" });
export type SkillDetail = z.infer<typeof SkillDetail>;

export const RepositoryHealth = z.object({
  name: z.string(),
  status: z.enum(["loaded", "refused"]),
  skills: z.int(),
  digest: z.string().nullable(),
  reason: z.string().optional(),
});
export type RepositoryHealth = z.infer<typeof RepositoryHealth>;

export const HealthReport = z
  .object({
    status: z.enum(["ok", "degraded"]),
    repository: z.array(RepositoryHealth),
    servers: z.array(ServerHealth),
    catalog: z.object({ generation: z.int(), refreshed_at: z.string().nullable() }),
  })
  .meta({ id: "Health" });
export type HealthReport = z.infer<typeof HealthReport>;
