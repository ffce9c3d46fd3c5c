import { existsSync } from "node:fs";
import { join } from "node:path";
import { Stage, Tags } from "aws-cdk-lib";
import type { HttpApi } from "aws-cdk-lib/aws-apigatewayv2";
import type { Alarm, Dashboard, IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { Grant, type IGrantable } from "aws-cdk-lib/aws-iam";
import { type IKey, Key } from "aws-cdk-lib/aws-kms";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import { Topic } from "aws-cdk-lib/aws-sns";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import type { RouteGroup } from "../functions/contract/settings.ts";
import { type Bundles, ofEachFunction, placeProject } from "./bundle.ts";
import { type CheckedProject, checkProject } from "./checked-project.ts";
import { ServiceAlarms } from "./constructs/alarms.ts";
import { ArtifactBucket } from "./constructs/artifact-bucket.ts";
import { ServiceDashboard } from "./constructs/dashboard.ts";
import { addHttpFunction } from "./constructs/http-function.ts";
import { JobApi } from "./constructs/job-api.ts";
import { toNamespace } from "./constructs/metrics.ts";
import { RefreshPath } from "./constructs/refresh-path.ts";
import { RefreshQueues } from "./constructs/refresh-queues.ts";
import type { ServiceFunction } from "./constructs/service-function.ts";
import type { Watched } from "./constructs/watched.ts";
import { addJobsQueue, WorkerPath } from "./constructs/worker-path.ts";
import type { FunctionName } from "./entry-points.ts";
import { BUILT_CODE } from "./package-places.ts";
import { toProjectSource, withIssuer } from "./read-props.ts";
import type { SkillBrokerProps } from "./skillbroker-props.ts";

/**
 * The whole service: API, functions, bucket, queues, alarms and a dashboard. It reads neither account nor region, and
 * there can be several in a stack. Throws an `Error` that lists everything that is wrong with the props, the skills and
 * the servers that they name, so that nothing is synthesised that would not run.
 */
export class SkillBroker extends Construct {
  readonly api: HttpApi;
  /** Address of the API; ends in a slash. */
  readonly url: string;
  /** Artifacts, job records and the catalog. */
  readonly bucket: Bucket;
  /** Jobs that nobody waits for. */
  readonly jobsQueue: Queue;
  readonly jobsDeadLetterQueue: Queue;
  /** Notifications of MCP servers, also those that do not come over HTTP. */
  readonly notificationsQueue: Queue;
  readonly notificationsDeadLetterQueue: Queue;
  /** Delayed refreshes; only the service itself sends to it. */
  readonly refreshQueue: Queue;
  readonly refreshDeadLetterQueue: Queue;
  readonly functions: Readonly<Record<FunctionName, IFunction>>;
  readonly dashboard: Dashboard;
  readonly alarms: readonly Alarm[];
  readonly #jobApi: JobApi;
  readonly #auth: CheckedProject["settings"]["auth"];
  readonly #encryptionKey: IKey | undefined;

  constructor(scope: Construct, id: string, props: SkillBrokerProps = {}) {
    super(scope, id);
    const project = checkProps(this, props);
    const made = makeService(this, project, {
      bundles: placeBundles(this, project, props.functionsCode ?? BUILT_CODE),
      encryptionKey: toKey(this, props.encryptionKey),
      actions: toAlarmActions(this, props),
    });
    this.#jobApi = made.jobApi;
    this.#auth = project.settings.auth;
    this.#encryptionKey = made.encryptionKey;
    this.api = made.jobApi.api;
    this.url = made.jobApi.url;
    this.bucket = made.store.bucket;
    const { jobs, notifications, refreshes } = made.watched.queues;
    this.jobsQueue = jobs;
    this.jobsDeadLetterQueue = jobs.deadLetters;
    this.notificationsQueue = notifications;
    this.notificationsDeadLetterQueue = notifications.deadLetters;
    this.refreshQueue = refreshes;
    this.refreshDeadLetterQueue = refreshes.deadLetters;
    this.functions = ofEachFunction((name) => made.watched.functions[name].handler);
    this.dashboard = made.dashboard;
    this.alarms = made.alarms;
    for (const [key, value] of Object.entries(project.settings.tags)) Tags.of(this).add(key, value);
  }

  /** To run jobs and read what came of them. Throws unless `auth` is `"iam"`. */
  grantInvoke(grantee: IGrantable): Grant {
    return this.#grantRoutes(grantee, ["run", "read"]);
  }

  /** To read jobs, files, tools, skills and refreshes, and to change nothing. Throws unless `auth` is `"iam"`. */
  grantRead(grantee: IGrantable): Grant {
    return this.#grantRoutes(grantee, ["read"]);
  }

  /** To ask for a refresh now. Throws unless `auth` is `"iam"`. */
  grantOperate(grantee: IGrantable): Grant {
    return this.#grantRoutes(grantee, ["operate"]);
  }

  /** To tell of a server's changed list: into the queue, and over HTTP where `auth` is `"iam"`. */
  grantNotify(grantee: IGrantable): Grant {
    const resourceArns = [this.notificationsQueue.queueArn];
    const send = Grant.addToPrincipal({ grantee, actions: ["sqs:SendMessage"], resourceArns });
    // A queue takes a message to be encrypted only from who may use its key.
    const encrypt = this.#encryptionKey?.grant(grantee, "kms:Decrypt", "kms:GenerateDataKey");
    const post = this.#auth === "iam" ? this.#grantRoutes(grantee, ["notify"]) : undefined;
    return [encrypt, post].reduce<Grant>((all, grant) => (grant === undefined ? all : all.combine(grant)), send);
  }

  #grantRoutes(grantee: IGrantable, groups: readonly RouteGroup[]): Grant {
    if (this.#auth !== "iam") throw new Error(`${this.node.path}: ${whyNoGrant(this.#auth, groups)}`);
    const resourceArns = [...this.#jobApi.arnsOf(groups)];
    return Grant.addToPrincipal({ grantee, actions: ["execute-api:Invoke"], resourceArns });
  }
}

function whyNoGrant(auth: CheckedProject["settings"]["auth"], groups: readonly RouteGroup[]): string {
  if (typeof auth === "string") return `auth is "${auth}": the API lets everybody in, and there is nothing to grant`;
  const scopes = groups.map((group) => auth.scopes[group]).join(" and ");
  return `IAM does not decide who calls this API, its tokens do: have ${auth.issuer} give the client ${scopes}`;
}

function checkProps(scope: Construct, props: SkillBrokerProps): CheckedProject {
  const checked = checkProject(toProjectSource(props));
  // A plain error: Node would print a Fault with all its fields, and so the list twice.
  if (!checked.ok) throw new Error(`${scope.node.path}: ${checked.fault.message}`);
  return withIssuer(checked.value, props);
}

function placeBundles(scope: Construct, { settings, skills, servers }: CheckedProject, code: string): Bundles {
  if (!existsSync(code)) {
    const help = "run npm run build in the checkout of skillbroker, or give the directory as functionsCode";
    throw new Error(`${scope.node.path}: the code of the functions is not at ${code}; ${help}`);
  }
  const { outdir } = Stage.of(scope) ?? {};
  if (outdir === undefined) throw new Error(`${scope.node.path}: belongs into a stack of an app`);
  // Not a temporary directory: without asset staging the template points at this very place.
  const directory = join(outdir, "bundles", scope.node.addr);
  return placeProject({ code, skills, approvals: settings.tools, servers, directory });
}

function toKey(scope: Construct, key: SkillBrokerProps["encryptionKey"]): IKey | undefined {
  return typeof key === "string" ? Key.fromKeyArn(scope, "EncryptionKey", key) : key;
}

function toAlarmActions(scope: Construct, props: SkillBrokerProps): readonly IAlarmAction[] {
  const { alarmTopic, alarmActions = [] } = props;
  if (alarmTopic === undefined) return alarmActions;
  const topic = typeof alarmTopic === "string" ? Topic.fromTopicArn(scope, "AlarmTopic", alarmTopic) : alarmTopic;
  return [...alarmActions, new SnsAction(topic)];
}

type Chosen = {
  readonly bundles: Bundles;
  readonly encryptionKey: IKey | undefined;
  readonly actions: readonly IAlarmAction[];
};
type Service = Pick<Chosen, "encryptionKey"> & {
  readonly jobApi: JobApi;
  readonly store: ArtifactBucket;
  readonly watched: Watched;
  readonly dashboard: Dashboard;
  readonly alarms: readonly Alarm[];
};

function makeService(scope: Construct, { settings, servers }: CheckedProject, chosen: Chosen): Service {
  const { bundles, encryptionKey, actions } = chosen;
  const store = new ArtifactBucket(scope, "Store", { ...settings, encryptionKey });
  const queues = new RefreshQueues(scope, "Queues", { ...settings, encryptionKey });
  const jobs = addJobsQueue(scope, "Jobs", { ...settings, encryptionKey });
  const namespace = toNamespace(scope);
  const parts = { settings, bundles, servers, store, queues, jobs, encryptionKey, namespace };
  const http = addHttpFunction(scope, "Http", parts);
  const jobApi = new JobApi(scope, "Api", { handler: http.handler, settings, encryptionKey });
  const functions = collect(
    http,
    new WorkerPath(scope, "WorkerPath", parts),
    new RefreshPath(scope, "RefreshPath", parts),
  );
  const watched = {
    namespace,
    functions,
    settings,
    api: jobApi.api,
    servers: servers.names,
    queues: { jobs, notifications: queues.notifications, refreshes: queues.refreshes },
  };
  const { alarms } = new ServiceAlarms(scope, "Alarms", { watched, actions });
  const { dashboard } = new ServiceDashboard(scope, "Overview", { watched, alarms });
  return { encryptionKey, jobApi, store, watched, dashboard, alarms };
}

function collect(http: ServiceFunction, jobs: WorkerPath, refreshes: RefreshPath): Watched["functions"] {
  const { worker, deadJobs } = jobs;
  const { notify, refresh, reconcile } = refreshes;
  return { http, worker, "dead-jobs": deadJobs, notify, refresh, reconcile };
}
