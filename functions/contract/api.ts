import * as z from "zod";
import type { RouteGroup } from "./auth.ts";
import {
  HealthReport,
  ModelTools,
  SkillDetail,
  SkillList,
  type SkillSummary,
  ToolGroups,
  ToolsQuery,
} from "./catalog.ts";
import type { FaultCode, Outcome } from "./fault.ts";
import { JobList, JobReport, JobRequest } from "./job.ts";
import { Notification, NotificationReceipt } from "./notification.ts";
import type { Link } from "./ports.ts";
import { RefreshReport, RefreshRequest } from "./refresh.ts";

/**
 * The routes as data. The dispatcher, the validation, the local server, the deployed gateway and `/openapi.json` all
 * read this table, so what is documented is what is checked.
 */

export const JobListQuery = z.strictObject({
  limit: z
    .string()
    .regex(/^\d{1,3}$/, "a whole number from 1 to 100 expected")
    .transform(Number)
    .pipe(z.int().min(1, "at least 1").max(100, "at most 100"))
    .optional()
    .meta({ description: "jobs in the answer, 20 when left out" }),
  after: z
    .string()
    .regex(/^[0-9a-z]{26}$/, "a job id expected")
    .optional()
    .meta({ description: "the `next` of the page before" }),
});
export type JobListQuery = z.infer<typeof JobListQuery>;

export type Route = {
  readonly operation: string;
  /** What a caller must be allowed to use it. */
  readonly group: RouteGroup;
  readonly method: "GET" | "POST" | "DELETE";
  /** Path template; `{name}` matches one segment. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly body?: z.ZodType;
  /** A request without a body is taken for one with `{}`. */
  readonly bodyOptional?: boolean;
  readonly query?: z.ZodObject;
  /** Headers that change what the route does, and how. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  /** What 202 in place of `status` means, where it can be answered. */
  readonly accepted?: string;
  /** Absent when the answer has no JSON body. */
  readonly response?: z.ZodType;
  readonly faults: readonly FaultCode[];
};

export const ROUTES = [
  {
    operation: "getHealth",
    group: "read",
    method: "GET",
    path: "/v1/health",
    summary: "Whether every repository loaded, and which catalog is in force",
    status: 200,
    response: HealthReport,
    faults: [],
  },
  {
    operation: "listTools",
    group: "read",
    method: "GET",
    path: "/v1/tools",
    summary: "Approved tools in groups, or as definitions for a model",
    description:
      "Beside the approved tools stand those that MCP servers offer and nobody approved, and those whose definition is another than the approved one.",
    query: ToolsQuery,
    status: 200,
    response: z.union([ToolGroups, ModelTools]),
    faults: ["REQUEST_INVALID"],
  },
  {
    operation: "listSkills",
    group: "read",
    method: "GET",
    path: "/v1/skills",
    summary: "Every skill that was loaded and verified",
    status: 200,
    response: SkillList,
    faults: [],
  },
  {
    operation: "getSkill",
    group: "read",
    method: "GET",
    path: "/v1/skills/{namespace}/{name}",
    summary: "One skill with instructions, files and flattened tool set",
    status: 200,
    response: SkillDetail,
    faults: ["SKILL_NOT_FOUND", "REPOSITORY_REFUSED"],
  },
  {
    operation: "runJob",
    group: "run",
    method: "POST",
    path: "/v1/jobs",
    summary: "Run a job and answer with its report",
    description:
      "Calls run in order; a call that fails does not stop the next. Nothing runs when a tool is unknown, not approved or not allowed.",
    body: JobRequest,
    headers: {
      Prefer: "`respond-async`: answer 202 at once and run the job in the background; GET the job to see how it goes",
      "Idempotency-Key":
        "1 to 255 printable characters, no comma; the same key with the same job is run once and gets the first answer, for seven days",
    },
    status: 200,
    accepted: "The job is queued; `Location` is where its report is",
    response: JobReport,
    faults: [
      "REQUEST_INVALID",
      "TOOL_INPUT_INVALID",
      "ACCESS_DENIED",
      "TOOL_NOT_APPROVED",
      "TOOL_NOT_ALLOWED",
      "TOOL_DEFINITION_CHANGED",
      "TOOL_UNKNOWN",
      "SKILL_NOT_FOUND",
      "SERVER_UNAVAILABLE",
      "REPOSITORY_REFUSED",
      "PAYLOAD_TOO_LARGE",
      "OUTPUT_TOO_LARGE",
      "MEDIA_TYPE_UNSUPPORTED",
      "IDEMPOTENCY_IN_PROGRESS",
      "IDEMPOTENCY_MISMATCH",
      "REQUEST_TIMEOUT",
    ],
  },
  {
    operation: "listJobs",
    group: "read",
    method: "GET",
    path: "/v1/jobs",
    summary: "The caller's own jobs, newest first",
    query: JobListQuery,
    status: 200,
    response: JobList,
    faults: ["REQUEST_INVALID", "ACCESS_DENIED"],
  },
  {
    operation: "getJob",
    group: "read",
    method: "GET",
    path: "/v1/jobs/{job_id}",
    summary: "A job's report, with links minted at this moment",
    status: 200,
    response: JobReport,
    faults: ["ACCESS_DENIED", "JOB_NOT_FOUND"],
  },
  {
    operation: "cancelJob",
    group: "run",
    method: "DELETE",
    path: "/v1/jobs/{job_id}",
    summary: "Cancel a job that is queued or running",
    description:
      "The job is `failed` with `JOB_CANCELLED` at once; a call that is under way ends unseen. Cancelling it again answers the same.",
    status: 200,
    response: JobReport,
    faults: ["ACCESS_DENIED", "JOB_NOT_FOUND", "JOB_FINISHED"],
  },
  {
    operation: "getArtifact",
    group: "read",
    method: "GET",
    path: "/v1/jobs/{job_id}/artifacts/{artifact_id}",
    summary: "Redirect to a fresh download link",
    status: 302,
    faults: ["ACCESS_DENIED", "JOB_NOT_FOUND", "ARTIFACT_NOT_FOUND", "ARTIFACT_EXPIRED"],
  },
  {
    operation: "deleteArtifact",
    group: "run",
    method: "DELETE",
    path: "/v1/jobs/{job_id}/artifacts/{artifact_id}",
    summary: "Remove the file; its name and digest stay in the report",
    status: 204,
    faults: ["ACCESS_DENIED", "JOB_NOT_FOUND", "ARTIFACT_NOT_FOUND"],
  },
  {
    operation: "notify",
    group: "notify",
    method: "POST",
    path: "/v1/notifications",
    summary: "Pass on that an MCP server's list of tools changed",
    description:
      "The list is fetched once the server has been quiet for the debounce window, or the longest wait is over.",
    body: Notification,
    status: 202,
    response: NotificationReceipt,
    faults: ["REQUEST_INVALID", "ACCESS_DENIED", "PAYLOAD_TOO_LARGE", "MEDIA_TYPE_UNSUPPORTED"],
  },
  {
    operation: "getLatestRefresh",
    group: "read",
    method: "GET",
    path: "/v1/refreshes/latest",
    summary: "What the last refresh came to, with its cause and what it changed",
    status: 200,
    response: RefreshReport,
    faults: [],
  },
  {
    operation: "refresh",
    group: "operate",
    method: "POST",
    path: "/v1/refreshes",
    summary: "Fetch the servers' lists now and publish, or only compute, the catalog",
    description: "Without a body every server's list is fetched. A server that fails keeps its last good list.",
    body: RefreshRequest,
    bodyOptional: true,
    status: 200,
    response: RefreshReport,
    faults: ["REQUEST_INVALID", "ACCESS_DENIED", "PAYLOAD_TOO_LARGE", "MEDIA_TYPE_UNSUPPORTED", "SERVER_UNAVAILABLE"],
  },
  {
    operation: "getOpenApi",
    group: "read",
    method: "GET",
    path: "/openapi.json",
    summary: "This description",
    status: 200,
    response: z.record(z.string(), z.unknown()),
    faults: [],
  },
] as const satisfies readonly Route[];

export type OperationName = (typeof ROUTES)[number]["operation"];

export type JobSubmission = {
  readonly owner: string;
  readonly request: JobRequest;
  readonly idempotencyKey?: string | undefined;
  /** Of the HTTP request, for the log. */
  readonly requestId: string;
};

/** The use cases behind the routes. `owner` is the id of the authenticated principal, never its name. */
export type SkillBrokerApi = {
  getHealth(): Promise<HealthReport>;
  listTools(query: ToolsQuery): Promise<ToolGroups | ModelTools>;
  listSkills(): Promise<readonly SkillSummary[]>;
  getSkill(name: string): Promise<Outcome<SkillDetail>>;
  /** Resolves when the job has ended. */
  runJob(submission: JobSubmission): Promise<Outcome<JobReport>>;
  /** Resolves when the job is queued; with a key that was used before, the job may have ended since. */
  queueJob(submission: JobSubmission): Promise<Outcome<JobReport>>;
  cancelJob(owner: string, jobId: string): Promise<Outcome<JobReport>>;
  listJobs(owner: string, query: JobListQuery): Promise<JobList>;
  getJob(owner: string, jobId: string): Promise<Outcome<JobReport>>;
  linkArtifact(owner: string, jobId: string, artifactId: string): Promise<Outcome<Link>>;
  deleteArtifact(owner: string, jobId: string, artifactId: string): Promise<Outcome<null>>;
  /** Resolves once the notification is queued. */
  notify(notification: Notification): Promise<Outcome<null>>;
  getLatestRefresh(): Promise<RefreshReport>;
  refresh(request: RefreshRequest): Promise<Outcome<RefreshReport>>;
};
