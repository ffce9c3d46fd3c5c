import { createArgumentChecker } from "../broker/argument-schema.ts";
import { createInProcessRunner } from "../broker/in-process-runner.ts";
import { buildCatalog, toHealthReport } from "../catalog/catalog.ts";
import { toSkillDetail, toSkillSummaries } from "../catalog/skill-views.ts";
import { toModelTools, toToolGroups } from "../catalog/tool-views.ts";
import type { SkillBrokerApi } from "../contract/api.ts";
import { Fault, type Outcome, succeed } from "../contract/fault.ts";
import { type LimitsInput, operatorLimits } from "../contract/limits.ts";
import type { Clock, Log, ObjectStore, RandomBytes } from "../contract/ports.ts";
import { HANDLERS, SKILL_HANDLERS } from "../handlers/table.ts";
import { deleteArtifact, linkArtifact, listJobs, reportJob, toReport } from "../job/report-job.ts";
import { runJob } from "../job/run-job.ts";
import { loadRepositories } from "../repository/load.ts";
import type { Pins } from "../repository/pins.ts";

/** Puts the use cases together over adapters that the entry point chose: the same in the cloud and on one machine. */

export type ApiOptions = {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Log;
  /** Directory that holds the repositories. */
  readonly skillsRoot: string;
  /** Throws `SkillError` when the pins cannot be read; every repository is then refused, the service stays up. */
  readonly pins: () => Pins;
  /** Names of the repositories wanted; undefined for all. */
  readonly repositories?: readonly string[] | undefined;
  readonly approvals: readonly string[];
  readonly limits: LimitsInput;
  readonly artifactDays: number;
};

/** Reads and verifies the repositories once. Throws only for a bad deploy. */
export function createApi(options: ApiOptions): SkillBrokerApi {
  const { store, clock, randomBytes, log, artifactDays } = options;
  const repositories = loadRepositories({
    root: options.skillsRoot,
    pins: options.pins,
    handlers: SKILL_HANDLERS,
    wanted: options.repositories,
  });
  const catalog = buildCatalog({ repositories, approvals: options.approvals, log });
  const runner = createInProcessRunner(HANDLERS, clock);
  const limits = operatorLimits(options.limits);
  const running = { catalog, store, runner, checkArguments: createArgumentChecker(), limits, clock, randomBytes, log };
  const reporting = { store, clock, artifactDays };
  return {
    getHealth: () => toHealthReport(catalog),
    listTools: ({ format }) => (format === undefined ? toToolGroups(catalog) : toModelTools(catalog, format)),
    listSkills: () => toSkillSummaries(catalog),
    getSkill: (name) => caught(() => toSkillDetail(name, catalog)),
    runJob: async (owner, request) => {
      const ran = await runJob(owner, request, running);
      return ran.ok ? succeed(await toReport(ran.value, reporting)) : ran;
    },
    listJobs: (owner, query) => listJobs(owner, query, reporting),
    getJob: (owner, jobId) => reportJob(owner, jobId, reporting),
    linkArtifact: (owner, jobId, artifactId) => linkArtifact(owner, jobId, artifactId, reporting),
    deleteArtifact: (owner, jobId, artifactId) => deleteArtifact(owner, jobId, artifactId, reporting),
  };
}

function caught<T>(act: () => T): Outcome<T> {
  try {
    return succeed(act());
  } catch (error) {
    if (error instanceof Fault) return { ok: false, fault: error };
    throw error;
  }
}
