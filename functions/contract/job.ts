import * as z from "zod";
import { FAULTS } from "./fault.ts";
import { LimitsInput } from "./limits.ts";
import { NAME_PATTERN } from "./skill.ts";
import { ToolRef } from "./tool.ts";

/** Jobs on the wire (snake_case JSON) and in the store. */

const SKILL_NAME = new RegExp(`^${NAME_PATTERN}/${NAME_PATTERN}$`);

export const SkillName = z
  .string()
  .regex(SKILL_NAME, 'must be a skill\'s full name such as "builtin/status-update"')
  .meta({ id: "SkillName", examples: ["builtin/status-update"] });

const CallId = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 of A-Z a-z 0-9 _ . -")
  .meta({ description: "names the call within its job; c1, c2, … when left out" });

/** More than any operator should allow; the operator's own `max_calls` decides. */
const MOST_CALLS = 1_000;
const MOST_REFS = 1_000;

export const CallRequest = z
  .strictObject({
    id: CallId.optional(),
    tool: ToolRef,
    arguments: z.record(z.string(), z.unknown()).default({}).meta({ description: "fits the tool's input_schema" }),
  })
  .meta({ id: "CallRequest" });
export type CallRequest = z.infer<typeof CallRequest>;

export const JobRequest = z
  .strictObject({
    allowed_tools: z
      .array(ToolRef)
      .max(MOST_REFS)
      .optional()
      .meta({ description: "the tools this job may call; left out, those that its calls name" }),
    allowed_skills: z
      .array(SkillName)
      .max(MOST_REFS)
      .optional()
      .meta({ description: "skills whose tool sets this job may call too" }),
    calls: z.array(CallRequest).min(1, "at least one call").max(MOST_CALLS),
    limits: LimitsInput.optional(),
  })
  .meta({
    id: "JobRequest",
    examples: [
      {
        allowed_tools: ["create_pdf@1"],
        calls: [{ id: "c1", tool: "create_pdf@1", arguments: { title: "Minutes", body: "We met." } }],
        limits: { max_calls: 4, call_timeout_ms: 2000 },
      },
    ],
  });
export type JobRequest = z.infer<typeof JobRequest>;

export const FaultCodeSchema = z.enum(Object.keys(FAULTS)).meta({ id: "FaultCode" });
const Timestamp = z.iso.datetime();
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

export const ViolationSchema = z
  .object({ path: z.string().meta({ description: "JSON Pointer into what was sent" }), message: z.string() })
  .meta({ id: "Violation" });

export const ErrorSchema = z
  .object({ code: FaultCodeSchema, message: z.string(), errors: z.array(ViolationSchema).optional() })
  .meta({ id: "CallError" });

const Named = { call_id: z.string(), tool: z.string() };

export const CallResult = z
  .discriminatedUnion("ok", [
    z.object({ ...Named, ok: z.literal(true), output: z.record(z.string(), z.unknown()) }),
    z.object({ ...Named, ok: z.literal(false), error: ErrorSchema }),
  ])
  .meta({ id: "CallResult" });
export type CallResult = z.infer<typeof CallResult>;

const ArtifactFacts = {
  artifact_id: z.string(),
  call_id: z.string(),
  name: z.string(),
  media_type: z.string(),
  size_bytes: z.int(),
  sha256: Sha256,
};

export const ArtifactReport = z
  .object({
    ...ArtifactFacts,
    url: z.string().optional().meta({ description: "download link, absent once the file is deleted or expired" }),
    expires_at: Timestamp.optional().meta({ description: "when the link stops working" }),
    deleted_at: Timestamp.optional(),
  })
  .meta({ id: "Artifact" });
export type ArtifactReport = z.infer<typeof ArtifactReport>;

export const JobStatus = z.enum(["queued", "running", "succeeded", "partial", "failed"]);

const Usage = z
  .object({ calls: z.int(), duration_ms: z.int(), output_bytes: z.int(), artifact_bytes: z.int() })
  .meta({ id: "Usage" });

export const JobReport = z
  .object({
    job_id: z.string(),
    status: JobStatus,
    created_at: Timestamp,
    finished_at: Timestamp.optional().meta({ description: "absent while the job is queued or running" }),
    error: ErrorSchema.optional().meta({ description: "why the job failed as a whole" }),
    results: z.array(CallResult),
    artifacts: z.array(ArtifactReport),
    usage: Usage,
    catalog_generation: z.int(),
  })
  .meta({ id: "JobReport" });
export type JobReport = z.infer<typeof JobReport>;

/** What is kept of each call for an audit: digests instead of contents. */
const CallAudit = z.object({
  call_id: z.string(),
  ref: z.string(),
  /** Absent when the ref was refused, so that there is no definition. */
  definition_digest: Sha256.optional(),
  arguments_digest: Sha256,
  outcome: z.string(),
  duration_ms: z.int(),
  output_bytes: z.int(),
  artifact_bytes: z.int(),
});
export type CallAudit = z.infer<typeof CallAudit>;

export const ArtifactRecord = z.object({ ...ArtifactFacts, key: z.string(), deleted_at: Timestamp.optional() });
export type ArtifactRecord = z.infer<typeof ArtifactRecord>;

/** A job in the store: the report without links, and the audit. */
export const JobRecord = z.object({
  version: z.literal(1),
  job_id: z.string(),
  owner: z.string(),
  status: JobStatus,
  created_at: Timestamp,
  finished_at: Timestamp.optional(),
  error: ErrorSchema.optional(),
  /** Times that a worker took the job. */
  attempts: z.int().optional(),
  /**
   * Who took the job last, by the message that told of it and how often that was handed out; and until when at most.
   */
  lease: z.object({ message_id: z.string(), receive_count: z.int(), until: Timestamp }).optional(),
  /** A tool of a server may have been called for it. */
  called_servers: z.boolean().optional(),
  /** When the last message that tells of it was sent. */
  sent_at: Timestamp.optional(),
  results: z.array(CallResult),
  artifacts: z.array(ArtifactRecord),
  usage: Usage,
  catalog_generation: z.int(),
  link_seconds: z.int(),
  audit: z.array(CallAudit),
});
export type JobRecord = z.infer<typeof JobRecord>;

/** In the jobs queue: which job is to be run. */
export const JobMessage = z.strictObject({ owner: z.string().regex(/^[0-9a-f]{32}$/), job_id: z.string() });
export type JobMessage = z.infer<typeof JobMessage>;

export const JobSummary = z
  .object({
    job_id: z.string(),
    status: JobStatus,
    created_at: Timestamp,
    calls: z.int(),
    artifacts: z.int(),
  })
  .meta({ id: "JobSummary" });
export type JobSummary = z.infer<typeof JobSummary>;

export const JobList = z
  .object({ jobs: z.array(JobSummary), next: z.string().optional() })
  .meta({ id: "JobList", description: "newest first; pass `next` as `after` for the following page" });
export type JobList = z.infer<typeof JobList>;
