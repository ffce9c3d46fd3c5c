import { chmodSync, cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { type Border, startBorder } from "./border.ts";
import { CREDENTIALS } from "./emulators.ts";
import { createLambda, type Lambda } from "./lambda.ts";
import { ACCOUNT, REGION } from "./names.ts";
import { type Permits, permissionsOf } from "./permissions.ts";
import { type Queue, type Times, toMade } from "./queues.ts";
import { type Assembly, type Made, resolveText } from "./template.ts";

/** A function of the template, with its code in a place of its own, and its border to everything else. */

export type DeployedFunction = {
  readonly lambda: Lambda;
  readonly border: Border;
  readonly permits: Permits;
  /** Name of a variable -> logical id of the queue that it names. */
  readonly queueIn: (variable: string) => string | undefined;
};

export type FunctionPlace = {
  readonly assembly: Assembly;
  /** Outside the checkout; each function has a directory of its own in it. */
  readonly directory: string;
  readonly times?: Times;
  readonly change?: (code: string, id: string) => void;
  readonly trusted?: string;
  readonly made: ReadonlyMap<string, Made>;
  readonly queues: readonly Queue[];
  /** Addresses of the emulators. */
  readonly services: { readonly s3: string; readonly sqs: string };
};

/** What is not named here is refused: a property that is passed over would look as if it held. */
const FunctionProperties = z.strictObject({
  Architectures: z.array(z.string()).optional(),
  Code: z.object({ S3Key: z.string() }),
  Description: z.string().optional(),
  Environment: z.strictObject({ Variables: z.record(z.string(), z.unknown()) }).default({ Variables: {} }),
  Handler: z.string(),
  // Another format than text would put each line into an envelope, where no metric filter finds its fields.
  LoggingConfig: z.strictObject({ LogGroup: z.unknown() }).optional(),
  MemorySize: z.int().default(128),
  RecursiveLoop: z.literal("Terminate").optional(),
  Role: z.strictObject({ "Fn::GetAtt": z.tuple([z.string(), z.literal("Arn")]) }),
  // That of this process.
  Runtime: z.literal(`nodejs${process.versions.node.split(".")[0]}.x`),
  Timeout: z.int().default(3),
  TracingConfig: z.strictObject({ Mode: z.enum(["Active", "PassThrough"]) }).default({ Mode: "PassThrough" }),
});
type FunctionProperties = z.infer<typeof FunctionProperties>;

/** `given`: its properties, as the template has them. */
export async function deployFunction(id: string, given: unknown, place: FunctionPlace): Promise<DeployedFunction> {
  const properties = FunctionProperties.parse(given);
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
    traced: properties.TracingConfig.Mode === "Active",
    variables: { ...Object.fromEntries(told), ...toNetwork(border, place) },
  });
  const queueIn = (variable: string) =>
    near.find(([, { ref }]) => ref === told.find(([key]) => key === variable)?.[1])?.[0];
  return { lambda, border, permits, queueIn };
}

/** How the function reaches AWS, and whom it trusts; what no variable of its own names goes the same way. */
function toNetwork(border: Border, { directory, trusted }: FunctionPlace): Readonly<Record<string, string>> {
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
function placeCode(id: string, { Code }: FunctionProperties, { assembly, directory, change }: FunctionPlace): string {
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
