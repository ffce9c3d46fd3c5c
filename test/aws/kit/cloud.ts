import type { SQSClient } from "@aws-sdk/client-sqs";
import * as z from "zod";
import { createTestSqsClient } from "../../kit/sqs-client.ts";
import { createGateway, type Gateway, type GatewayOptions } from "./api.ts";
import { type DeployedFunction, deployFunction } from "./deployed-function.ts";
import { CREDENTIALS, keysOf, type Storage, startQueueing, startStorage } from "./emulators.ts";
import { matchRoute, readGatewayRules } from "./gateway-rules.ts";
import { DEFAULT_CONCURRENCY, type Mapping, MappingProperties, type MappingSetup, startMapping } from "./mapping.ts";
import { ACCOUNT, nameResources, REGION, storeName } from "./names.ts";
import { matches } from "./permissions.ts";
import { makeQueues, type Queue, type Times, toMade } from "./queues.ts";
import { RuleProperties, toScheduledEvent } from "./schedule.ts";
import { type Assembly, type Resolution, type Resources, resolve, resolveText, resourcesOf } from "./template.ts";

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
  readonly sqs: SQSClient;
  keys(prefix: string): Promise<readonly string[]>;
  close(): Promise<void>;
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
  const bucket = storeName(resources);
  const storage = await startStorage(bucket);
  onClose(storage.close);
  const queueing = await startQueueing();
  onClose(queueing.close);
  const sqs = createTestSqsClient(queueing.url, LONG_POLLING);
  const named = nameResources(resources);
  const queues = await makeQueues({ client: sqs, resources, made: named, times });
  const made = new Map([...named, ...queues.map((queue) => [queue.id, toMade(queue, queue.url)] as const)]);
  const place = { ...options, made, queues, services: { s3: storage.url, sqs: queueing.url } };
  const functions = new Map<string, DeployedFunction>();
  for (const [id, properties] of resourcesOf(resources, "AWS::Lambda::Function")) {
    const deployed = await deployFunction(id, properties, place);
    onClose(deployed.border.close);
    onClose(deployed.lambda.close);
    functions.set(id, deployed);
  }
  const stack = { resources, resolution: { made }, functions };
  const startFeed = (feed: MappingSetup) => {
    const mapping = startMapping(feed, sqs);
    onClose(mapping.close);
    return mapping;
  };
  return {
    functions,
    queues,
    sqs,
    storage: storage.kind,
    ...openGateway(stack),
    feeds: readFeeds(stack, queues),
    startFeed,
    tick: () => fireSchedules(stack),
    output: (name) => resolveText(assembly.outputs.get(name), stack.resolution),
    keys: (prefix) => keysOf(storage.client, bucket, prefix),
    close,
  };
}

/** A request may wait for messages. */
const LONG_POLLING = { region: REGION, credentials: CREDENTIALS, requestHandler: { requestTimeout: 30_000 } } as const;

type Stack = {
  readonly resources: Resources;
  readonly resolution: Resolution;
  readonly functions: ReadonlyMap<string, DeployedFunction>;
};

/** Throws when a route's function does not let the API invoke it. */
function openGateway(stack: Stack): Pick<Cloud, "request" | "functionBehind"> {
  const rules = readGatewayRules(stack.resources, stack.resolution);
  for (const { key, functionArn } of rules.routes) {
    const path = key === "$default" ? "/$default" : key.replace(/^\S+ /, "").replace(/\{[^}]+\}/g, "*");
    const source = `arn:aws:execute-api:${REGION}:${ACCOUNT}:${rules.apiId}/${rules.stage}/*${path}`;
    expectInvocable(stack, { functionArn, principal: "apigateway.amazonaws.com", source });
  }
  const invoke: GatewayOptions["invoke"] = (arn, event) => functionOf(stack, arn).lambda.invoke(event);
  return {
    request: createGateway({ rules, region: REGION, account: ACCOUNT, invoke }),
    functionBehind: (method, path) => {
      const matched = matchRoute(rules.routes, method, path);
      return matched === undefined ? undefined : functionOf(stack, matched.route.functionArn);
    },
  };
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
