import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import type { Access, Permits } from "./permissions.ts";

/**
 * Stands between one function and AWS: knows by the signature which service is meant, asks the function's role whether
 * it may, hands the request on unchanged to the emulator of that service, and keeps a list. Each function has its own,
 * so that what arrives here is known to be of that function.
 */

export type AwsCall = Access & { readonly allowed: boolean };

export type Border = {
  readonly url: string;
  /** In the order of arrival, downloads by links among them. */
  readonly calls: readonly AwsCall[];
  /** From now on such calls wait, unanswered and not handed on. */
  hold(isHeld: (call: AwsCall) => boolean): Hold;
  close(): Promise<void>;
};

export type Hold = {
  /** Resolves once a call waits. */
  readonly reached: Promise<AwsCall>;
  /** Hands on what waits and is still wanted, and holds nothing more. */
  release(): void;
};

export type BorderOptions = {
  /** Addresses of the emulators. */
  readonly services: { readonly s3: string; readonly sqs: string };
  readonly permits: Permits;
  readonly region: string;
  readonly account: string;
};

type Asked = {
  readonly incoming: IncomingMessage;
  readonly body: Buffer;
  readonly service: string | undefined;
  readonly access: Access;
};

export async function startBorder(options: BorderOptions): Promise<Border> {
  const calls: AwsCall[] = [];
  const agent = new Agent({ keepAlive: true });
  let holding: ((call: AwsCall) => Promise<void> | undefined) | undefined;
  const server = createServer(async (incoming, response) => {
    const body = await readBody(incoming);
    if (body === undefined) return;
    const asked = describe(incoming, body, options);
    const call = { ...asked.access, allowed: options.permits(asked.access) };
    calls.push(call);
    await holding?.(call);
    // The client is gone: what it asked for has not happened.
    if (incoming.socket.destroyed) return;
    const target = asked.service === "s3" || asked.service === "sqs" ? options.services[asked.service] : undefined;
    if (!call.allowed || target === undefined) refuse(asked, response);
    else passOn(asked, { response, target, agent, permits: options.permits });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`,
    calls,
    hold: (isHeld) => {
      const reached = Promise.withResolvers<AwsCall>();
      const released = Promise.withResolvers<void>();
      holding = (call) => {
        if (!isHeld(call)) return undefined;
        reached.resolve(call);
        return released.promise;
      };
      const release = () => {
        holding = undefined;
        released.resolve();
      };
      return { reached: reached.promise, release };
    },
    close: async () => {
      agent.destroy();
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Undefined when the client went away in the midst of it. */
async function readBody(incoming: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of incoming) chunks.push(chunk);
    return Buffer.concat(chunks);
  } catch {
    return undefined;
  }
}

function describe(incoming: IncomingMessage, body: Buffer, { region, account }: BorderOptions): Asked {
  const url = new URL(incoming.url ?? "/", "http://border.test");
  const signed = url.searchParams.get("X-Amz-Credential") ?? incoming.headers.authorization ?? "";
  const service = /\/([a-z0-9-]+)\/aws4_request/.exec(signed)?.[1];
  const asked = { incoming, body, service };
  if (service === "s3") return { ...asked, access: toS3Access(incoming.method ?? "", url) };
  const target = String(incoming.headers["x-amz-target"] ?? `unsigned ${incoming.method} ${url.pathname}`);
  // A batch needs no right of its own.
  const action = `${service}:${target.replace(/^.*\./, "").replace(/(Message|Visibility)Batch$/, "$1")}`;
  if (service !== "sqs") return { ...asked, access: { action, resource: "*" } };
  const queue: unknown = JSON.parse(body.toString()).QueueUrl;
  const resource = `arn:aws:sqs:${region}:${account}:${String(queue).split("/").at(-1)}`;
  return { ...asked, access: { action, resource } };
}

const OBJECT_ACTIONS: ReadonlyMap<string, string> = new Map([
  ["GET", "s3:GetObject"],
  ["HEAD", "s3:GetObject"],
  ["PUT", "s3:PutObject"],
  ["DELETE", "s3:DeleteObject"],
]);

/** Path-style addresses. */
function toS3Access(method: string, { pathname, searchParams }: URL): Access {
  const [, bucket = "", ...key] = pathname.split("/");
  if (key.join("/") !== "") {
    const resource = `arn:aws:s3:::${bucket}/${decodeURIComponent(key.join("/"))}`;
    return { action: OBJECT_ACTIONS.get(method) ?? `s3:${method}`, resource };
  }
  const prefix = searchParams.get("prefix");
  const conditions = new Map(prefix === null ? [] : [["s3:prefix", prefix]]);
  const action = method === "GET" && searchParams.get("list-type") === "2" ? "s3:ListBucket" : `s3:${method}Bucket`;
  return { action, resource: `arn:aws:s3:::${bucket}`, conditions };
}

function refuse({ service }: Asked, response: ServerResponse): void {
  const message = "the role of the function does not allow it";
  if (service === "s3") {
    const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>${message}</Message></Error>`;
    return void response.writeHead(403, { "content-type": "application/xml" }).end(body);
  }
  const body = JSON.stringify({ __type: "com.amazon.coral.service#AccessDeniedException", message });
  response.writeHead(403, { "content-type": "application/x-amz-json-1.0" }).end(body);
}

type Passage = {
  readonly response: ServerResponse;
  readonly target: string;
  readonly agent: Agent;
  readonly permits: Permits;
};

function passOn(asked: Asked, { response, target, agent, permits }: Passage): void {
  const { method, url, headers } = asked.incoming;
  const { hostname, port } = new URL(target);
  // The host as it was signed.
  const outgoing = send({ hostname, port, method, path: url, headers, agent }, (answer) => {
    if (answer.statusCode === 404 && !mayKnowOfAbsence(asked.access, permits)) {
      answer.resume();
      return refuse(asked, response);
    }
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    return answer.pipe(response);
  });
  outgoing.on("error", () => response.destroy());
  response.on("close", () => outgoing.destroy());
  outgoing.end(asked.body);
}

/** S3 says that an object is not there only to who may list the bucket. */
function mayKnowOfAbsence({ action, resource }: Access, permits: Permits): boolean {
  if (action !== "s3:GetObject") return true;
  return permits({ action: "s3:ListBucket", resource: resource.split("/")[0] ?? "" });
}
