import { createArgumentChecker } from "../broker/argument-schema.ts";
import { createInProcessRunner } from "../broker/in-process-runner.ts";
import { type Installation, toCatalog, toHealthReport } from "../catalog/catalog.ts";
import { createCatalogReader } from "../catalog/published-catalog.ts";
import { toSkillDetail, toSkillSummaries } from "../catalog/skill-views.ts";
import { toModelTools, toToolGroups } from "../catalog/tool-views.ts";
import type { SkillBrokerApi } from "../contract/api.ts";
import { Fault, type Outcome, succeed } from "../contract/fault.ts";
import { toSyncLeaseMs } from "../contract/job-times.ts";
import { type LimitsInput, operatorLimits, toAsyncLimits } from "../contract/limits.ts";
import { withFields } from "../contract/log-fields.ts";
import type { Notification } from "../contract/notification.ts";
import type { Clock, EventQueue, Log, ObjectStore, RandomBytes, ToolSource } from "../contract/ports.ts";
import type { RefreshReport, RefreshRequest } from "../contract/refresh.ts";
import { HANDLERS } from "../handlers/table.ts";
import { cancelJob } from "../job/cancel-job.ts";
import { queueJob } from "../job/queue-job.ts";
import { deleteArtifact, linkArtifact, listJobs, reportJob, toReport } from "../job/report-job.ts";
import { runJob } from "../job/run-job.ts";
import { checkServer } from "../refresh/read-message.ts";
import { refreshServers } from "../refresh/refresh-servers.ts";
import { toRefreshReport } from "../refresh/report.ts";

/** Puts the use cases together over adapters that the entry point chose: the same in the cloud and on one machine. */

export type ApiOptions = {
  readonly installed: Installation;
  readonly store: ObjectStore;
  readonly notifications: EventQueue;
  readonly toolSource: ToolSource;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Log;
  /** Where asynchronous jobs wait for a worker. */
  readonly jobs: EventQueue;
  readonly limits: LimitsInput;
  /** Longest time of an asynchronous job. */
  readonly asyncJobSeconds: number;
  readonly artifactDays: number;
  readonly maxListAgeMs: number;
  /** For one server's list, when a refresh was asked for. */
  readonly listTimeoutMs: number;
  /** For all lists together. */
  readonly refreshTimeoutMs: number;
  /** For publishing after that. */
  readonly publishTimeoutMs: number;
  readonly listedAtOnce: number;
};

export function createApi(options: ApiOptions): SkillBrokerApi {
  const { store, clock, randomBytes, log, artifactDays, toolSource } = options;
  const catalogs = createCatalogReader(options);
  const runner = createInProcessRunner(HANDLERS, clock);
  const limits = operatorLimits(options.limits);
  const openSession = () => toolSource.openSession();
  const running = { store, runner, openSession, checkArguments: createArgumentChecker(), clock, randomBytes };
  const leaseMs = toSyncLeaseMs(limits.job_timeout_ms);
  const asyncLimits = toAsyncLimits(limits, options.asyncJobSeconds);
  const reporting = { store, clock, artifactDays };
  return {
    getHealth: async () => toHealthReport(await catalogs.current(), clock()),
    listTools: async ({ format }) => {
      const catalog = await catalogs.current();
      return format === undefined ? toToolGroups(catalog) : toModelTools(catalog, format);
    },
    listSkills: async () => toSkillSummaries(await catalogs.current()),
    getSkill: async (name) => {
      const catalog = await catalogs.current();
      return caught(() => toSkillDetail(name, catalog));
    },
    runJob: async (submission) => {
      const bound = withFields(log, { request_id: submission.requestId });
      // Held for the whole job: what is published meanwhile is for the next one.
      const catalog = await catalogs.current();
      const ran = await runJob(submission, { ...running, catalog, limits, leaseMs, log: bound });
      return ran.ok ? succeed(await toReport(ran.value, reporting)) : ran;
    },
    queueJob: async (submission) => {
      const bound = withFields(log, { request_id: submission.requestId });
      const catalog = await catalogs.current();
      const jobs = options.jobs;
      const queued = await queueJob(submission, {
        ...running,
        catalog,
        limits: asyncLimits,
        leaseMs,
        jobs,
        log: bound,
      });
      return queued.ok ? succeed(await toReport(queued.value, reporting)) : queued;
    },
    cancelJob: async (owner, jobId) => {
      const cancelled = await cancelJob(owner, jobId, { ...reporting, log });
      return cancelled.ok ? succeed(await toReport(cancelled.value, reporting)) : cancelled;
    },
    listJobs: (owner, query) => listJobs(owner, query, reporting),
    getJob: (owner, jobId) => reportJob(owner, jobId, reporting),
    linkArtifact: (owner, jobId, artifactId) => linkArtifact(owner, jobId, artifactId, reporting),
    deleteArtifact: (owner, jobId, artifactId) => deleteArtifact(owner, jobId, artifactId, reporting),
    notify: (notification) => notify(notification, options),
    getLatestRefresh: async () => toRefreshReport(await catalogs.current(), { now: clock(), dryRun: false }),
    refresh: (request) => refresh(request, options),
  };
}

/** The notification's own parameters are nobody's business further on, and might not fit a queue. */
async function notify({ params: _, ...kept }: Notification, options: ApiOptions): Promise<Outcome<null>> {
  const unknown = checkServer(kept.server, namesOf(options.installed));
  if (unknown !== undefined) return unknown;
  await options.notifications.send({ body: JSON.stringify(kept) });
  return succeed(null);
}

async function refresh(request: RefreshRequest, options: ApiOptions): Promise<Outcome<RefreshReport>> {
  const { installed, clock, maxListAgeMs } = options;
  const declared = namesOf(installed);
  const servers = [...new Set(request.servers ?? declared)];
  for (const [index, server] of (request.servers ?? []).entries()) {
    const unknown = checkServer(server, declared, `/servers/${index}`);
    if (unknown !== undefined) return unknown;
  }
  const order = { servers, cause: request.source ?? "request", dryRun: request.dry_run } as const;
  const refreshed = await refreshServers(order, options);
  if (!refreshed.ok) return refreshed;
  const now = clock();
  const catalog = toCatalog(installed, refreshed.value, { now, maxListAgeMs });
  return succeed(toRefreshReport(catalog, { now, dryRun: request.dry_run }));
}

function namesOf({ servers }: Installation): ReadonlySet<string> {
  return new Set(servers.map(({ name }) => name));
}

function caught<T>(act: () => T): Outcome<T> {
  try {
    return succeed(act());
  } catch (error) {
    if (error instanceof Fault) return { ok: false, fault: error };
    throw error;
  }
}
