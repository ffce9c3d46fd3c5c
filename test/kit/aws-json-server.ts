import { createServer } from "node:http";

/** A service that speaks AWS's JSON protocol on 127.0.0.1 and says what a test tells it to, true or not. */

/** `hang`: no answer, ever. Text: a body that need not be JSON. */
export type PlannedAnswer = { readonly status?: number; readonly body: object | string } | "hang" | "drop";

const NOTHING: PlannedAnswer = { body: {} };

export type AwsJsonServer = {
  readonly url: string;
  /** In the order of arrival. `action` without the service: `SendMessage`. */
  readonly requests: readonly { readonly action: string; readonly body: unknown }[];
  /** One for each coming request; the last one is said again and again. */
  say(...plan: readonly PlannedAnswer[]): void;
  close(): Promise<void>;
};

export async function startAwsJsonServer(): Promise<AwsJsonServer> {
  const requests: { action: string; body: unknown }[] = [];
  let planned: readonly PlannedAnswer[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const action = String(request.headers["x-amz-target"]).split(".").at(-1) ?? "";
    requests.push({ action, body: JSON.parse(Buffer.concat(chunks).toString()) });
    const [answer = NOTHING, ...rest] = planned;
    if (rest.length > 0) planned = rest;
    if (answer === "hang") return;
    if (answer === "drop") {
      response.destroy();
      return;
    }
    response.writeHead(answer.status ?? 200, { "content-type": "application/x-amz-json-1.0" });
    response.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    say: (...plan) => {
      planned = plan;
    },
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/** As AWS answers an error. */
export function toAwsError(name: string, message: string, status = 400): PlannedAnswer {
  return { status, body: { __type: `com.amazonaws.test#${name}`, message } };
}
