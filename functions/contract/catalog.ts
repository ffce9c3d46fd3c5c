import * as z from "zod";

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
  })
  .meta({ id: "Tool" });
export type ToolEntry = z.infer<typeof ToolEntry>;

/** Approved tools, by where they come from. */
export const ToolGroups = z
  .object({ bundled: z.array(ToolEntry), repository: z.array(ToolEntry), mcp: z.array(ToolEntry) })
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
          approved: z.boolean(),
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
    catalog: z.object({ generation: z.int(), refreshed_at: z.string().nullable() }),
  })
  .meta({ id: "Health" });
export type HealthReport = z.infer<typeof HealthReport>;
