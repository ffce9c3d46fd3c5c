import { randomBytes } from "node:crypto";
import { createHttpHandler, type HttpHandler } from "../functions/aws/http/handler.ts";
import type { Installation } from "../functions/catalog/catalog.ts";
import { Fault, type Outcome } from "../functions/contract/fault.ts";
import { toWorkerSeconds } from "../functions/contract/job-times.ts";
import type { Clock, Log, ObjectStore, Timer, ToolSource } from "../functions/contract/ports.ts";
import { ANSWER_MS, MAX_HTTP_BODY_BYTES, PRODUCT_VERSION } from "../functions/contract/product.ts";
import {
  LISTED_AT_ONCE,
  REQUESTED_LISTING_DEADLINE_MS,
  REQUESTED_PUBLISHING_MS,
} from "../functions/contract/refresh-limits.ts";
import { readPinsFile } from "../functions/repository/pins-file.ts";
import { createApi } from "../functions/wiring/create-api.ts";
import { createWorker } from "../functions/wiring/create-worker.ts";
import { installProject } from "../functions/wiring/install-project.ts";
import { createLazyToolSource } from "../functions/wiring/lazy-ports.ts";
import { startJobPath } from "./job-path.ts";
import type { McpConnections, McpConnectionsOptions, PassOnOptions } from "./mcp-connections.ts";
import type { Project } from "./project.ts";
import { openLocalQueues } from "./queues.ts";
import { startRefreshPath } from "./refresh-path.ts";
import { createLocalSecretReader } from "./secrets.ts";
import { yieldingStore } from "./yielding-store.ts";

/** The functions of the stack on one machine, over embedded adapters. */

export type ServiceOptions = {
  readonly project: Project;
  /** Directory for data; made when missing. */
  readonly dataDirectory: string;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly log: Log;
  /** Where secrets that `mcp.json` names are looked up. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * What is done beside answering. `jobs`: queued jobs are run. `all`: lists are fetched when they are due, too, and
   * the servers' notifications are listened to. A command that asks one question leaves it to the service that lives
   * on.
   */
  readonly background: "none" | "jobs" | "all";
};

export type LocalService = {
  readonly handler: HttpHandler;
  /** Resolves once what is under way has ended. */
  close(): Promise<void>;
};

export async function startService(options: ServiceOptions, objects: ObjectStore): Promise<LocalService> {
  const { project, dataDirectory, clock, timer, log, env, background } = options;
  const { settings } = project;
  const store = yieldingStore(objects);
  const installed = installLocally(project, log);
  const readSecret = createLocalSecretReader({ env, clock });
  const closing = new AbortController();
  const toolSource = createLazyToolSource(async () => {
    const { createMcpToolSource } = await import("../functions/mcp/client/tool-source.ts");
    const abortAfter = (milliseconds: number) => AbortSignal.any([AbortSignal.timeout(milliseconds), closing.signal]);
    const source = createMcpToolSource({ servers: installed.servers, readSecret, clock, abortAfter });
    return whileOpen(source, closing.signal);
  });
  const queues = openLocalQueues({ directory: dataDirectory, settings, clock, log });
  const { limits, asyncJobSeconds } = settings;
  const maxListAgeMs = settings.maxListAgeSeconds * 1000;
  const running = { installed, store, toolSource, clock, log, limits, asyncJobSeconds, maxListAgeMs };
  const leaseMs = toWorkerSeconds(asyncJobSeconds) * 1000;
  // A message of this machine comes again only when nobody keeps it hidden any more.
  const work = createWorker({ ...running, leaseMs, redeliveryIsDeath: true });
  const idle = { ...queues, close: async () => undefined };
  const path =
    background === "all"
      ? startRefreshPath({ installed, settings, store, toolSource, queues, clock, timer, log })
      : idle;
  const jobPath =
    background !== "none" ? startJobPath({ settings, store, jobs: queues.jobs, work, clock, timer, log }) : idle;
  const servers = background === "all" ? installed.servers : [];
  const listening = { servers, readSecret, clock, timer, random: Math.random, log };
  const pauseMs = (settings.debounceSeconds * 1000) / 2;
  const connections = await listen(listening, { queue: path.notifications, timer, log, pauseMs });
  const api = createApi({
    ...running,
    notifications: path.notifications,
    jobs: jobPath.jobs,
    randomBytes,
    artifactDays: settings.artifactDays,
    listTimeoutMs: REQUESTED_LISTING_DEADLINE_MS,
    refreshTimeoutMs: REQUESTED_LISTING_DEADLINE_MS,
    publishTimeoutMs: REQUESTED_PUBLISHING_MS,
    listedAtOnce: LISTED_AT_ONCE,
  });
  const handler = createHttpHandler({
    api,
    auth: "iam",
    maxBodyBytes: MAX_HTTP_BODY_BYTES,
    version: PRODUCT_VERSION,
    answerMs: ANSWER_MS,
    log,
    clock,
  });
  const close = async () => {
    closing.abort();
    await connections.close();
    await Promise.all([path.close(), jobPath.close()]);
    queues.close();
  };
  return { handler, close };
}

/**
 * A list or a call that ends because the service does must not be kept as a server's failure: the message that asked
 * for it stays queued.
 */
function whileOpen(source: ToolSource, closing: AbortSignal): ToolSource {
  const list: ToolSource["list"] = async (server, limits) => {
    const listed = await source.list(server, limits);
    return orStopped(listed, closing);
  };
  const openSession: ToolSource["openSession"] = () => {
    const session = source.openSession();
    return { ...session, call: async (call, limits) => orStopped(await session.call(call, limits), closing) };
  };
  return { list, openSession };
}

function orStopped<T>(outcome: Outcome<T>, closing: AbortSignal): Outcome<T> {
  if (!outcome.ok && closing.aborted) throw new Fault("SERVER_UNAVAILABLE", "the service stopped meanwhile");
  return outcome;
}

/** The MCP SDK takes its time to load, which a service without servers need not wait for. */
async function listen(options: McpConnectionsOptions, passing: PassOnOptions): Promise<Pick<McpConnections, "close">> {
  if (options.servers.length === 0) return { close: async () => undefined };
  const { passOn, startMcpConnections } = await import("./mcp-connections.ts");
  return startMcpConnections(options, passOn(passing));
}

function installLocally({ settings, skillsRoot, mcp }: Project, log: Log): Installation {
  return installProject({
    skillsRoot,
    pins: () => readPinsFile(skillsRoot),
    repositories: settings.repositories,
    approvals: settings.tools,
    mcp,
    log,
  });
}
