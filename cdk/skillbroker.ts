import { existsSync } from "node:fs";
import { join } from "node:path";
import { Annotations, Stack, Stage, Tags, Token } from "aws-cdk-lib";
import type { HttpApi, HttpStage } from "aws-cdk-lib/aws-apigatewayv2";
import type { Alarm, Dashboard, IAlarmAction } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { Grant, type IGrantable } from "aws-cdk-lib/aws-iam";
import { type IKey, Key } from "aws-cdk-lib/aws-kms";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { Bucket } from "aws-cdk-lib/aws-s3";
import { Topic } from "aws-cdk-lib/aws-sns";
import type { Queue } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import type { RouteGroup } from "../functions/contract/auth.ts";
import { type Bundles, ENTRY_NAME, ofEachFunction, placeProject } from "./bundle.ts";
import { type CheckedProject, checkProject } from "./checked-project.ts";
import { ServiceAlarms } from "./constructs/alarms.ts";
import { ArtifactBucket } from "./constructs/artifact-bucket.ts";
import { ServiceDashboard } from "./constructs/dashboard.ts";
import { addHttpFunction } from "./constructs/http-function.ts";
import { JobApi } from "./constructs/job-api.ts";
import { toInstanceName, toNamespace } from "./constructs/metrics.ts";
import { RefreshPath } from "./constructs/refresh-path.ts";
import { RefreshQueues } from "./constructs/refresh-queues.ts";
import type { ServiceFunction } from "./constructs/service-function.ts";
import type { Watched } from "./constructs/watched.ts";
import { addJobsQueue, WorkerPath } from "./constructs/worker-path.ts";
import { FUNCTION_NAMES, type FunctionName } from "./entry-points.ts";
import { BUILT_CODE } from "./package-places.ts";
import { toProjectSource, withLaterValues } from "./read-props.ts";
import type { SkillBrokerProps } from "./skillbroker-props.ts";
import type { Warning } from "./warnings.ts";

/**
 * The whole service: API, functions, bucket, queues, alarms and a dashboard. It reads neither account nor region, and
 * there can be several in a stack. Throws an `Error` that lists everything that is wrong with the props, the skills and
 * the servers that they name, so that nothing is synthesised that would not run.
 */
export class SkillBroker extends Construct {
  readonly api: HttpApi;
  /** The one stage of the API, for a domain of your own (`ApiMapping`): `api.defaultStage` is not set. */
  readonly stage: HttpStage;
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

  constructor(scope: Construct, id: string, props: SkillBrokerProps | CheckedProps = {}) {
    super(scope, id);
    const { project, ...chosen } = props instanceof CheckedProps ? props : checkProps(this, props);
    for (const warning of project.warnings) warn(this, warning);
    const made = makeService(this, project, {
      bundles: placeBundles(this, project, chosen.functionsCode ?? BUILT_CODE),
      encryptionKey: toKey(this, chosen.encryptionKey),
      actions: toAlarmActions(this, chosen),
    });
    this.#jobApi = made.jobApi;
    this.#auth = project.settings.auth;
    this.#encryptionKey = made.encryptionKey;
    this.api = made.jobApi.api;
    this.stage = made.jobApi.stage;
    this.url = made.jobApi.stage.url;
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

  /**
   * To tell of a server's changed list: into the queue, and over HTTP where `auth` is `"iam"` and the grantee has a
   * policy. Who has none, an account or a service, is let in by the queue's own policy. Throws when neither can be
   * written.
   */
  grantNotify(grantee: IGrantable): Grant {
    const resource = this.notificationsQueue;
    const resourceArns = [resource.queueArn];
    const send = Grant.addToPrincipalOrResource({ grantee, actions: ["sqs:SendMessage"], resourceArns, resource });
    const grants = [this.#must(send, "to send to the queue of notifications")];
    // A queue takes a message to be encrypted only from who may use its key.
    if (this.#encryptionKey !== undefined) grants.push(this.#grantEncrypt(grantee, this.#encryptionKey));
    if (this.#auth === "iam") grants.push(this.#addRoutes(grantee, ["notify"]));
    return grants.reduce((all, grant) => all.combine(grant));
  }

  #grantEncrypt(grantee: IGrantable, key: IKey): Grant {
    const actions = ["kms:Decrypt", "kms:GenerateDataKey"];
    // Of the policy of a key that was made elsewhere the CDK says that it was written, and does not write it.
    if (key instanceof Key) return key.grant(grantee, ...actions);
    const grant = Grant.addToPrincipal({ grantee, actions, resourceArns: [key.keyArn] });
    return this.#must(grant, "to use the key of the queue");
  }

  #grantRoutes(grantee: IGrantable, groups: readonly RouteGroup[]): Grant {
    if (this.#auth !== "iam") throw new Error(`${this.node.path}: ${whyNotByIam(this.#auth, groups)}`);
    return this.#must(this.#addRoutes(grantee, groups), "to call the API");
  }

  #addRoutes(grantee: IGrantable, groups: readonly RouteGroup[]): Grant {
    const resourceArns = [...this.#jobApi.arnsOf(groups)];
    return Grant.addToPrincipal({ grantee, actions: ["execute-api:Invoke"], resourceArns });
  }

  /** A grant that changed nothing would be found out by whoever is refused. */
  #must(grant: Grant, what: string): Grant {
    if (grant.success) return grant;
    const help = "grant it to a role, a user or a group, or write the policy where it is kept";
    throw new Error(`${this.node.path}: nothing was granted ${what}: the grantee has no policy of its own; ${help}`);
  }
}

/** Props that were checked before, with what only the CDK knows what to do with. */
export class CheckedProps {
  readonly project: CheckedProject;
  readonly encryptionKey: SkillBrokerProps["encryptionKey"];
  readonly alarmTopic: SkillBrokerProps["alarmTopic"];
  readonly alarmActions: SkillBrokerProps["alarmActions"];
  readonly functionsCode: SkillBrokerProps["functionsCode"];

  constructor(project: CheckedProject, props: CdkProps) {
    this.project = project;
    this.encryptionKey = props.encryptionKey;
    this.alarmTopic = props.alarmTopic;
    this.alarmActions = props.alarmActions;
    this.functionsCode = props.functionsCode;
  }
}

type CdkProps = Pick<SkillBrokerProps, "encryptionKey" | "alarmTopic" | "alarmActions" | "functionsCode">;

function whyNotByIam(auth: CheckedProject["settings"]["auth"], groups: readonly RouteGroup[]): string {
  if (auth === "iam") return "";
  if (auth === "none") return 'nobody has to be let in: auth "none" lets everybody in';
  const scopes = groups.map((group) => auth.scopes[group]).join(" and ");
  const issuer = Token.isUnresolved(auth.issuer) ? "its issuer" : auth.issuer;
  return `IAM does not decide who calls this API, its tokens do: have ${issuer} give the client ${scopes}`;
}

function warn(scope: Construct, { id, path, message }: Warning): void {
  Annotations.of(scope).addWarningV2(id, `${path}: ${message}`);
}

function checkProps(scope: Construct, props: unknown): CheckedProps {
  const { path } = scope.node;
  if (!isProps(props)) throw new Error(`${path}: an object of props expected, got ${props}`);
  if (!scope.node.scopes.some((each) => Stack.isStack(each))) {
    throw new Error(`${path}: belongs into a stack; make it in a Stack, or make a SkillBrokerStack`);
  }
  const { region, account } = Stack.of(scope);
  const place = { region: ifKnown(region), account: ifKnown(account) };
  const checked = checkProject({ ...toProjectSource(props), ...place });
  // A plain error: Node would print a Fault with all its fields, and so the list twice.
  if (!checked.ok) throw new Error(`${path}: ${checked.fault.message}`);
  return new CheckedProps(withLaterValues(checked.value, props), props);
}

function ifKnown(text: string): string | undefined {
  return Token.isUnresolved(text) ? undefined : text;
}

function isProps(props: unknown): props is SkillBrokerProps {
  return typeof props === "object" && props !== null && !Array.isArray(props);
}

function placeBundles(scope: Construct, { settings, skills, servers }: CheckedProject, code: string): Bundles {
  const missing = FUNCTION_NAMES.map((name) => join(name, `${ENTRY_NAME}.mjs`)).filter(
    (path) => !existsSync(join(code, path)),
  );
  if (missing.length > 0) {
    const what = missing.length === FUNCTION_NAMES.length ? "the code of the functions" : missing.join(", ");
    const help = "run npm run build in the checkout of skillbroker, or give the directory as functionsCode";
    throw new Error(`${scope.node.path}: ${what} is not at ${code}; ${help}`);
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

function toAlarmActions(scope: Construct, props: CdkProps): readonly IAlarmAction[] {
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
  const name = toInstanceName(scope);
  const jobApi = new JobApi(scope, "Api", { name, namespace, handler: http.handler, settings, encryptionKey });
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
