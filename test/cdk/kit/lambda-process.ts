import { fork } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, cpSync } from "node:fs";
import { join } from "node:path";
import type { APIGatewayProxyEventV2WithIAMAuthorizer } from "aws-lambda";

/** The deployed directory in a process of its own, in a place where no node_modules is above it. */

export type LambdaProcess = {
  /** Milliseconds of processor time that the import took: what Lambda would need with one whole processor. */
  readonly initMs: number;
  request(request: HttpRequest): Promise<HttpAnswer>;
  invoke(event: unknown): Promise<Reply>;
  close(): Promise<void>;
};
export type HttpRequest = { readonly method: string; readonly path: string; readonly body?: unknown };
// biome-ignore lint/suspicious/noExplicitAny: an answer's body is whatever the route says
export type HttpAnswer = { readonly status: number; readonly body: any; readonly timers: number };

/** `timers` are those that are still set when the handler has answered: Lambda would freeze them. */
// biome-ignore lint/suspicious/noExplicitAny: an answer is whatever the kind of event says
export type Reply = { readonly response: any; readonly timers: number };

/** Copies `asset` into `directory`, which must be empty; `change` may spoil the copy. */
export function placeAsset(asset: string, directory: string, change: (copy: string) => void = () => undefined): void {
  const copy = join(directory, "asset");
  cpSync(asset, copy, { recursive: true });
  copyFileSync(join(import.meta.dirname, "lambda-host.mjs"), join(directory, "lambda-host.mjs"));
  change(copy);
}

/** `env` is the whole environment of the process. Rejects when the import fails. */
export async function startLambda(directory: string, env: Readonly<Record<string, string>>): Promise<LambdaProcess> {
  const child = fork(join(directory, "lambda-host.mjs"), [], {
    cwd: directory,
    env,
    execArgv: [],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let said = "";
  child.stderr?.on("data", (chunk) => {
    said += chunk;
  });
  const exited = once(child, "exit");
  const lost = exited.then(([code]) => Promise.reject(new Error(`the function ended with ${code}: ${said}`)));
  lost.catch(() => undefined);
  const next = async () => (await Promise.race([once(child, "message"), lost]))[0];
  const { initMs } = await next();
  let calls = 0;
  const invoke = async (event: unknown): Promise<Reply> => {
    calls += 1;
    child.send({ id: `r${calls}`, event });
    const { response, timers, error } = await next();
    if (error !== undefined) throw new Error(error);
    return { response, timers };
  };
  return {
    initMs,
    invoke,
    request: async (request) => {
      const { response, timers } = await invoke(toEvent(request));
      const body = response.body === undefined ? undefined : JSON.parse(response.body);
      return { status: response.statusCode, body, timers };
    },
    close: async () => {
      child.disconnect();
      await exited;
    },
  };
}

/** As an HTTP API delivers it, payload 2.0, for a caller whom IAM authenticated. */
function toEvent({ method, path, body }: HttpRequest): APIGatewayProxyEventV2WithIAMAuthorizer {
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: path,
    rawQueryString: "",
    headers: { host: "abc.execute-api.eu-central-1.amazonaws.com", "content-type": "application/json" },
    requestContext: {
      accountId: "123456789012",
      apiId: "abc",
      authorizer: {
        iam: {
          accessKey: "ASIATEST",
          accountId: "123456789012",
          callerId: "AROATEST:caller",
          cognitoIdentity: null,
          principalOrgId: "",
          userArn: "arn:aws:sts::123456789012:assumed-role/caller/session",
          userId: "AROATEST:caller",
        },
      },
      domainName: "abc.execute-api.eu-central-1.amazonaws.com",
      domainPrefix: "abc",
      http: { method, path, protocol: "HTTP/1.1", sourceIp: "192.0.2.1", userAgent: "test" },
      requestId: "request-of-the-test",
      routeKey: "$default",
      stage: "$default",
      time: "30/Nov/2026:08:00:00 +0000",
      timeEpoch: 1_796_025_600_000,
    },
    isBase64Encoded: false,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
}
