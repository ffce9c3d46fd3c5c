import { GetQueueAttributesCommand } from "@aws-sdk/client-sqs";
import { expect } from "vitest";
import type { GatewayAnswer, GatewayRequest } from "./api.ts";
import type { Cloud } from "./cloud.ts";
import type { DeployedFunction } from "./deployed-function.ts";
import type { Lambda } from "./lambda.ts";
import type { MappingSetup } from "./mapping.ts";
import type { Queue } from "./queues.ts";

/** The service as its callers and operators know it, on whatever cloud it is deployed. */

export const ALICE = { userArn: "arn:aws:iam::000000000000:user/alice" } as const;
export const BOB = { userArn: "arn:aws:iam::000000000000:user/bob" } as const;

/** A request of Alice's, with `json` as its body. */
export function send(cloud: Cloud, { json, ...request }: GatewayRequest & { readonly json?: unknown }) {
  const typed = { headers: { "content-type": "application/json" }, body: JSON.stringify(json) };
  return cloud.request({ caller: ALICE, ...(json === undefined ? {} : typed), ...request });
}

/** A job with one artifact. */
export const PDF_JOB = {
  calls: [{ tool: "create_pdf@1", arguments: { title: "Minutes", body: "One line – and another." } }],
} as const;

export function postJob(cloud: Cloud, request: Partial<GatewayRequest> = {}, job: unknown = PDF_JOB) {
  return send(cloud, { method: "POST", path: "/v1/jobs", json: job, ...request });
}

// biome-ignore lint/suspicious/noExplicitAny: an answer's body is whatever the route says
export function jsonOf(answer: GatewayAnswer): any {
  return JSON.parse(answer.body.toString("utf8"));
}

/** The function behind a route, by what the template says alone. */
export function behindRoute(cloud: Cloud, method: string, path: string): DeployedFunction {
  const found = cloud.functionBehind(method, path);
  if (found === undefined) throw new Error(`nothing is behind ${method} ${path}`);
  return found;
}

/** Of all that the functions asked AWS for so far. */
export function expectAllAllowed(cloud: Cloud): void {
  const calls = [...cloud.functions].flatMap(([id, { border }]) => border.calls.map((call) => ({ id, ...call })));
  expect(calls.length).toBeGreaterThan(0);
  expect(calls.filter(({ allowed }) => !allowed)).toEqual([]);
}

/** What feeds a function from this queue. */
export function feedFrom(cloud: Cloud, queue: Queue): MappingSetup {
  const found = cloud.feeds.find((feed) => feed.queue.id === queue.id);
  if (found === undefined) throw new Error(`nothing is fed from ${queue.name}`);
  return found;
}

/** Messages that are in a queue, whether to be seen, hidden or delayed. */
export async function countIn({ sqs }: Cloud, { url }: Queue): Promise<number> {
  const names = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
  ] as const;
  const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: [...names] }));
  return names.reduce((sum, name) => sum + Number(Attributes?.[name]), 0);
}

/** Value of a variable that the function is told by the template. */
export function variableOf({ setup }: Lambda, name: string): string {
  const value = setup.variables[name];
  if (value === undefined) throw new Error(`${setup.name} is not told ${name}`);
  return value;
}

/** Where the dead letters of a queue go, and after how many attempts. */
export function redriveOf({ queues }: Cloud, { name, redrive }: Queue) {
  const deadLetters = queues.find(({ arn }) => arn === redrive?.deadLetterArn);
  if (redrive === undefined || deadLetters === undefined) throw new Error(`${name} has no dead letters`);
  return { deadLetters, maxReceives: redrive.maxReceives };
}
