import { chmodSync, cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { S3Client } from "@aws-sdk/client-s3";
import type { SQSClient } from "@aws-sdk/client-sqs";
import * as z from "zod";
import { createTestSqsClient } from "../../kit/sqs-client.ts";
import { createGateway, type Gateway } from "./api.ts";
import { type Border, startBorder } from "./border.ts";
import { CREDENTIALS, keysOf, REGION, type Storage, startQueueing, startStorage } from "./emulators.ts";
import { matchRoute, readGatewayRules } from "./gateway-rules.ts";
import { createLambda, type Lambda } from "./lambda.ts";
import { DEFAULT_CONCURRENCY, type Mapping, MappingProperties, type MappingSetup, startMapping } from "./mapping.ts";
import { matches, type Permits, permissionsOf } from "./permissions.ts";
import { makeQueues, type Queue, type Times, toMade } from "./queues.ts";
import { RuleProperties, toScheduledEvent } from "./schedule.ts";
import {
  type Assembly,
  type Made,
  type Resolution,
  type Resources,
  resolve,
  resolveText,
  resourcesOf,
} from "./template.ts";

/**
 * The deployed stack on this machine. Everything in it comes from the template: which functions there are and of what
 * code, what they are told, what they may do, what feeds them. Nothing here knows a function by its name.
 */

export type Cloud = {
  readonly request: Gateway;
  /** The function that a request would be handed to, whoever sends it. */
  functionBehind(method: string, path: string): DeployedFunction | undefined;
  /** By logical id. */
  readonly functions: ReadonlyMap<string, DeployedFunction>;
  readonly queues: readonly Queue[];
  /** What feeds functions from queues; none of them runs before it is told to. */
  readonly feeds: readonly MappingSetup[];
  startFeed(feed: MappingSetup): Mapping;
  /** Every schedule fires once; resolves when the functions have answered. */
  tick(): Promise<void>;
  /** Value of an output of the stack; addresses of queues are those of the emulator. */
  output(name: string): string;
  readonly storage: Storage["kind"];
  readonly s3: S3Client;
  readonly sqs: SQSClient;
  keys(prefix: string): Promise<readonly string[]>;
  close(): Promise<void>;
};

export type DeployedFunction = {
  readonly lambda: Lambda;
  readonly border: Border;
  readonly permits: Permits;
  /** Name of a variable -> logical id of the queue that it names. */
  readonly queueIn: (variable: string) => string | undefined;
};

export type DeployOptions = {
  readonly assembly: Assembly;
  /** An empty directory outside the checkout, for what is deployed. */
  readonly directory: string;
  readonly times?: Times;
  /** May spoil the code of a function before it is deployed. */
  readonly change?: (code: string, id: string) => void;
  /** PEM of certificates that functions trust beside those of Node. */
  readonly trusted?: string;
};

const ACCOUNT = "000000000000";

/** What is not named here is refused: a property that is passed over would look as if it held. */
const FunctionProperties = z.strictObject({
  Architectures: z.array(z.string()).optional(),
  Code: z.object({ S3Key: z.string() }),
  Description: z.string().optional(),
  Environment: z.strictObject({ Variables: z.record(z.string(), z.unknown()) }).default({ Variables: {} }),
  Handler: z.string(),
  LoggingConfig: z.unknown().optional(),
  MemorySize: z.int().default(128),
  RecursiveLoop: z.literal("Terminate").optional(),
  Role: z.strictObject({ "Fn::GetAtt": z.tuple([z.string(), z.literal("Arn")]) }),
  Runtime: z.string().regex(/^nodejs\d+\.x$/),
  Timeout: z.int().default(3),
});
type FunctionProperties = z.infer<typeof FunctionProperties>;

/** Ends what it began when it fails. */
export async function deploy(options: DeployOptions): Promise<Cloud> {
  const endings: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const end of endings.splice(0).reverse()) await end();
  };
  try {
    return await build(options, { close, onClose: (end) => endings.push(end) });
  } catch (error) {
    await close();
    throw error;
  }
}

type Ending = { readonly close: () => Promise<void>; readonly onClose: (end: () => Promise<unknown>) => void };

async function build(options: DeployOptions, { close, onClose }: Ending): Promise<Cloud> {
  const { assembly, times = {} } = options;
  const { resources } = assembly;
  const [[bucketId = ""] = [], ...buckets] = resourcesOf(resources, "AWS::S3::Bucket");
  if (buckets.length > 0) throw new Error("one bucket expected");
  const bucket = `skillbroker-${bucketId.toLowerCase()}`;
  const storage = await startStorage(bucket);
  onClose(storage.close);
  const queueing = await startQueueing();
  onClose(queueing.close);
  const sqs = createTestSqsClient(queueing.url, {
    region: REGION,
    credentials: CREDENTIALS,
    // Long polling is answered late.
    requestHandler: { requestTimeout: 30_000 },
  });
  const named = new Map([...PSEUDO, ...nameAll(resources), [bucketId, toMadeBucket(bucket)] as const]);
  const queues = await makeQueues({ client: sqs, resources, made: named, times });
  const made = new Map([...named, ...queues.map((queue) => [queue.id, toMade(queue, queue.url)] as const)]);
  const place = { ...options, made, queues, services: { s3: storage.url, sqs: queueing.url } };
  const functions = new Map<string, DeployedFunction>();
  for (const [id, properties] of resourcesOf(resources, "AWS::Lambda::Function")) {
    const deployed = await deployFunction(id, FunctionProperties.parse(properties), place);
    onClose(deployed.border.close);
    onClose(deployed.lambda.close);
    functions.set(id, deployed);
  }
  const stack: Stack = { resources, resolution: { made }, functions };
  const feeds = readFeeds(stack, queues);
  const rules = readGatewayRules(resources, stack.resolution);
  for (const { key, functionArn } of rules.routes) {
    const path = key === "$default" ? "/$default" : key.replace(/^\S+ /, "").replace(/\{[^}]+\}/g, "*");
    const source = `arn:aws:execute-api:${REGION}:${ACCOUNT}:${rules.apiId}/${rules.stage}/*${path}`;
    expectInvocable(stack, { functionArn, principal: "apigateway.amazonaws.com", source });
  }
  return {
    functions,
    queues,
    feeds,
    sqs,
    s3: storage.client,
    storage: storage.kind,
    request: createGateway({
      rules,
      region: REGION,
      account: ACCOUNT,
      invoke: (arn, event) => functionOf(stack, arn).lambda.invoke(event),
    }),
    functionBehind: (method, path) => {
      const matched = matchRoute(rules.routes, method, path);
      return matched === undefined ? undefined : functionOf(stack, matched.route.functionArn);
    },
    startFeed: (feed) => {
      const mapping = startMapping(feed, sqs);
      onClose(mapping.close);
      return mapping;
    },
    tick: () => fireSchedules(stack),
    output: (name) => resolveText(assembly.outputs.get(name), stack.resolution),
    keys: (prefix) => keysOf(storage.client, bucket, prefix),
    close,
  };
}

type Stack = {
  readonly resources: Resources;
  readonly resolution: Resolution;
  readonly functions: ReadonlyMap<string, DeployedFunction>;
};

const PSEUDO: readonly (readonly [string, Made])[] = [
  ["AWS::Region", REGION],
  ["AWS::AccountId", ACCOUNT],
  ["AWS::Partition", "aws"],
  ["AWS::URLSuffix", "amazonaws.com"],
  ["AWS::StackName", "SkillBroker"],
].map(([name = "", ref = ""]) => [name, { ref, attributes: {} }]);

const ARNS: ReadonlyMap<string, (name: string) => string> = new Map([
  ["AWS::Lambda::Function", (name) => `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${name}`],
  ["AWS::IAM::Role", (name) => `arn:aws:iam::${ACCOUNT}:role/${name}`],
  ["AWS::Events::Rule", (name) => `arn:aws:events:${REGION}:${ACCOUNT}:rule/${name}`],
  ["AWS::Logs::LogGroup", (name) => `arn:aws:logs:${REGION}:${ACCOUNT}:log-group:${name}:*`],
]);

/** Names for everything that is not made by somebody else, who would say what it is called. */
function nameAll(resources: Resources): readonly (readonly [string, Made])[] {
  return [...resources]
    .filter(([, { Type }]) => Type !== "AWS::SQS::Queue" && Type !== "AWS::S3::Bucket")
    .map(([id, { Type }]) => {
      const name = Type.startsWith("AWS::ApiGatewayV2::") ? id.slice(-8).toLowerCase() : `SkillBroker-${id}`;
      const arn = ARNS.get(Type)?.(name);
      return [id, { ref: name, attributes: arn === undefined ? {} : { Arn: arn } }] as const;
    });
}

function toMadeBucket(name: string): Made {
  return { ref: name, attributes: { Arn: `arn:aws:s3:::${name}` } };
}

type Place = DeployOptions & {
  readonly made: ReadonlyMap<string, Made>;
  readonly queues: readonly Queue[];
  readonly services: { readonly s3: string; readonly sqs: string };
};

async function deployFunction(id: string, properties: FunctionProperties, place: Place): Promise<DeployedFunction> {
  const { assembly, made, queues, services, times = {} } = place;
  const permits = permissionsOf(properties.Role["Fn::GetAtt"][0], assembly.resources, { made });
  const border = await startBorder({ services, permits, region: REGION, account: ACCOUNT });
  // The function reaches its queues by the border, as it reaches everything.
  const near = queues.map((queue) => [queue.id, toMade(queue, border.url + new URL(queue.url).pathname)] as const);
  const resolution = { made: new Map([...made, ...near]) };
  const { Variables } = properties.Environment;
  const told = Object.entries(Variables).map(([name, value]) => [name, resolveText(value, resolution)] as const);
  const { ref: name = id, attributes = {} } = made.get(id) ?? {};
  const lambda = createLambda({
    name,
    arn: attributes.Arn ?? "",
    region: REGION,
    taskRoot: placeCode(id, properties, place),
    handler: properties.Handler,
    timeoutMs: properties.Timeout * 1000 * (times.functions ?? 1),
    memoryMiB: properties.MemorySize,
    variables: { ...Object.fromEntries(told), ...toNetwork(border, place) },
  });
  const queueIn = (variable: string) =>
    near.find(([, { ref }]) => ref === told.find(([key]) => key === variable)?.[1])?.[0];
  return { lambda, border, permits, queueIn };
}

/** How the function reaches AWS, and whom it trusts; what no variable of its own names goes the same way. */
function toNetwork(border: Border, { directory, trusted }: Place): Readonly<Record<string, string>> {
  const authorities = join(directory, "authorities.pem");
  if (trusted !== undefined) writeFileSync(authorities, trusted);
  return {
    AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    AWS_SESSION_TOKEN: CREDENTIALS.sessionToken,
    AWS_ENDPOINT_URL: border.url,
    AWS_ENDPOINT_URL_S3: border.url,
    AWS_ENDPOINT_URL_SQS: border.url,
    ...(trusted === undefined ? {} : { NODE_EXTRA_CA_CERTS: authorities }),
  };
}

/** Readable alone, as below /var/task. */
function placeCode(id: string, { Code }: FunctionProperties, { assembly, directory, change }: Place): string {
  const asset = assembly.assets.get(Code.S3Key);
  if (asset === undefined) throw new Error(`the assembly has no asset ${Code.S3Key} for ${id}`);
  const code = join(directory, id, "task");
  mkdirSync(code, { recursive: true });
  cpSync(asset, code, { recursive: true });
  change?.(code, id);
  for (const entry of readdirSync(code, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) chmodSync(join(entry.parentPath, entry.name), 0o444);
  }
  return code;
}

function functionOf({ functions }: Stack, arnOrName: string): DeployedFunction {
  const found = [...functions.values()].find(({ lambda: { setup } }) => [setup.arn, setup.name].includes(arnOrName));
  if (found === undefined) throw new Error(`no function ${arnOrName}`);
  return found;
}

/** Throws when the function's role could not be used to read the queue, as AWS refuses to make such a mapping. */
function readFeeds(stack: Stack, queues: readonly Queue[]): readonly MappingSetup[] {
  return resourcesOf(stack.resources, "AWS::Lambda::EventSourceMapping").map(([id, properties]) => {
    const mapping = MappingProperties.parse(resolve(properties, stack.resolution));
    const queue = queues.find(({ arn }) => arn === mapping.EventSourceArn);
    if (queue === undefined) throw new Error(`${id} has no queue`);
    const { lambda, permits } = functionOf(stack, mapping.FunctionName);
    const needed = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
    const lacking = needed.filter((action) => !permits({ action, resource: queue.arn }));
    if (lacking.length > 0) throw new Error(`${lambda.setup.name} may not ${lacking.join(", ")} on ${queue.name}`);
    return {
      id,
      queue,
      lambda,
      batchSize: mapping.BatchSize,
      concurrency: mapping.ScalingConfig?.MaximumConcurrency ?? DEFAULT_CONCURRENCY,
      partial: mapping.FunctionResponseTypes.length > 0,
    };
  });
}

const Permission = z.object({
  Action: z.literal("lambda:InvokeFunction"),
  FunctionName: z.string(),
  Principal: z.string(),
  SourceArn: z.string(),
});

type Invocation = { readonly functionArn: string; readonly principal: string; readonly source: string };

/** Throws when the function does not let this service, in the name of this route or rule, invoke it. */
function expectInvocable({ resources, resolution }: Stack, { functionArn, principal, source }: Invocation): void {
  const permissions = resourcesOf(resources, "AWS::Lambda::Permission").map(([, properties]) =>
    Permission.parse(resolve(properties, resolution)),
  );
  const held = permissions.some(
    ({ FunctionName, Principal, SourceArn }) =>
      FunctionName === functionArn && Principal === principal && matches(SourceArn, source),
  );
  if (!held) throw new Error(`${source} may not invoke ${functionArn}`);
}

async function fireSchedules(stack: Stack): Promise<void> {
  for (const [id, properties] of resourcesOf(stack.resources, "AWS::Events::Rule")) {
    const { Targets } = RuleProperties.parse(resolve(properties, stack.resolution));
    const arn = stack.resolution.made.get(id)?.attributes.Arn ?? "";
    for (const { Arn: functionArn } of Targets) {
      expectInvocable(stack, { functionArn, principal: "events.amazonaws.com", source: arn });
      const invoked = await functionOf(stack, functionArn).lambda.invoke(toScheduledEvent({ arn, now: Date.now() }));
      if (!invoked.ok) throw new Error(`${functionArn} failed: ${JSON.stringify(invoked.error)}`);
    }
  }
}
