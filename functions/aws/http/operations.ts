import type * as z from "zod";
import { JobListQuery, type OperationName, type SkillBrokerApi } from "../../contract/api.ts";
import type { AuthMode } from "../../contract/auth.ts";
import { ToolsQuery } from "../../contract/catalog.ts";
import { Fault, type Outcome, refuse, succeed } from "../../contract/fault.ts";
import { type JobReport, JobRequest } from "../../contract/job.ts";
import { Notification } from "../../contract/notification.ts";
import { RefreshRequest } from "../../contract/refresh.ts";
import { toViolations } from "../../contract/violations.ts";
import { type HttpEvent, hasBody, idempotencyKeyOf, prefersAsync, queryOf, readJsonBody } from "./request.ts";
import type { Reply } from "./response.ts";

/** One function a route: HTTP on the left, a use case on the right. */

export type OperationContext = {
  readonly api: SkillBrokerApi;
  readonly auth: AuthMode;
  /** Longest request body in bytes. */
  readonly maxBodyBytes: number;
  readonly version: string;
};

export type Request = {
  readonly event: HttpEvent;
  readonly params: ReadonlyMap<string, string>;
  /** Id of the authenticated principal. */
  readonly caller: string;
  readonly requestId: string;
};
type Operation = (request: Request, context: OperationContext) => Promise<Outcome<Reply>>;

export const OPERATIONS: Readonly<Record<OperationName, Operation>> = {
  getHealth: async (_, { api }) => ok(await api.getHealth()),
  listTools: async ({ event }, { api }) => {
    const query = parseAs(ToolsQuery, queryOf(event), "the query");
    return query.ok ? ok(await api.listTools(query.value)) : query;
  },
  listSkills: async (_, { api }) => ok({ skills: await api.listSkills() }),
  getSkill: async ({ params }, { api }) => {
    const skill = await api.getSkill(`${param(params, "namespace")}/${param(params, "name")}`);
    return skill.ok ? ok(skill.value) : skill;
  },
  runJob: async ({ event, caller: owner, requestId }, { api, maxBodyBytes }) => {
    const key = idempotencyKeyOf(event);
    if (!key.ok) return key;
    const body = readJsonBody(event, { maxBytes: maxBodyBytes });
    if (!body.ok) return body;
    const request = parseAs(JobRequest, body.value, "the job");
    if (!request.ok) return request;
    const submission = { owner, request: request.value, idempotencyKey: key.value, requestId };
    if (prefersAsync(event)) return accepted(await api.queueJob(submission));
    const report = await api.runJob(submission);
    return report.ok ? ok(report.value) : report;
  },
  listJobs: async ({ event, caller }, { api }) => {
    const query = parseAs(JobListQuery, queryOf(event), "the query");
    return query.ok ? ok(await api.listJobs(caller, query.value)) : query;
  },
  getJob: async ({ caller, params }, { api }) => {
    const report = await api.getJob(caller, param(params, "job_id"));
    return report.ok ? ok(report.value) : report;
  },
  cancelJob: async ({ caller, params }, { api }) => {
    const report = await api.cancelJob(caller, param(params, "job_id"));
    return report.ok ? ok(report.value) : report;
  },
  getArtifact: async ({ caller, params }, { api }) => {
    const link = await api.linkArtifact(caller, param(params, "job_id"), param(params, "artifact_id"));
    return link.ok ? succeed({ status: 302, headers: { location: link.value.url } }) : link;
  },
  deleteArtifact: async ({ caller, params }, { api }) => {
    const deleted = await api.deleteArtifact(caller, param(params, "job_id"), param(params, "artifact_id"));
    return deleted.ok ? succeed({ status: 204 }) : deleted;
  },
  notify: async ({ event }, { api, maxBodyBytes }) => {
    const body = readJsonBody(event, { maxBytes: maxBodyBytes });
    if (!body.ok) return body;
    const notification = parseAs(Notification, body.value, "the notification");
    if (!notification.ok) return notification;
    const queued = await api.notify(notification.value);
    return queued.ok ? succeed({ status: 202, body: { queued: true, server: notification.value.server } }) : queued;
  },
  getLatestRefresh: async (_, { api }) => ok(await api.getLatestRefresh()),
  refresh: async ({ event }, { api, maxBodyBytes }) => {
    const body = hasBody(event) ? readJsonBody(event, { maxBytes: maxBodyBytes }) : succeed({});
    if (!body.ok) return body;
    const request = parseAs(RefreshRequest, body.value, "the refresh");
    if (!request.ok) return request;
    const report = await api.refresh(request.value);
    return report.ok ? ok(report.value) : report;
  },
  getOpenApi: async (_, { version }) => {
    // Loaded on demand: a cold start would pay for a description that few ask for.
    const { toOpenApi } = await import("../../contract/openapi.ts");
    return ok(toOpenApi(version));
  },
};

/** RFC 7240, 4.1; the report says how far the job is. */
function accepted(report: Outcome<JobReport>): Outcome<Reply> {
  if (!report.ok) return report;
  const headers = { location: `/v1/jobs/${report.value.job_id}`, "preference-applied": "respond-async" };
  return succeed({ status: 202, body: report.value, headers });
}

function ok(body: unknown): Outcome<Reply> {
  return succeed({ status: 200, body });
}

function param(params: ReadonlyMap<string, string>, name: string): string {
  const value = params.get(name);
  if (value === undefined) throw new Fault("DEFECT", `the route has no parameter ${name}`);
  return value;
}

function parseAs<T extends z.ZodType>(schema: T, value: unknown, what: string): Outcome<z.infer<T>> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return succeed(parsed.data);
  const violations = toViolations(parsed.error);
  const [first] = violations;
  return refuse("REQUEST_INVALID", `${what} is not valid: ${first?.path || "/"} ${first?.message}`, { violations });
}
