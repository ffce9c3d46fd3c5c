import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type HttpResponse, toProblem } from "../functions/aws/http/response.ts";
import { Fault, type Outcome, refuse, succeed } from "../functions/contract/fault.ts";

/** Reading a request and writing its answer over a socket, with clients that are slow, greedy or gone. */

export type Answer = HttpResponse & { readonly bytes?: Uint8Array };

/** Discarded after an early answer, so that a client that is still sending gets to read it. */
const MAX_DISCARDED_BYTES = 4 * 1024 * 1024;
const LINGER_MS = 2_000;

/**
 * The body; `PAYLOAD_TOO_LARGE` as soon as it is known to have more than `maxBytes`, by its declared length before a
 * byte is read. Throws when the client goes away.
 */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { maxBytes }: { readonly maxBytes: number },
): Promise<Outcome<Uint8Array>> {
  const tooLarge = refuse("PAYLOAD_TOO_LARGE", `the body has more than the ${maxBytes} bytes allowed`);
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return tooLarge;
  if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Left early, the iterator would destroy the request, and what is still being sent could not be read away.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > maxBytes) return tooLarge;
    chunks.push(chunk);
  }
  return succeed(Buffer.concat(chunks));
}

/** Throws for a header that HTTP cannot carry. */
export async function writeAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  const { statusCode = 200, headers = {}, body, bytes } = answer;
  const content = Buffer.from(bytes ?? body ?? "");
  const isHead = request.method === "HEAD";
  const named = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
  const length = statusCode === 204 || isHead ? {} : { "content-length": content.length };
  // What was not read of a refused body would be taken for the next request.
  const close = request.complete ? {} : { connection: "close" };
  response.writeHead(statusCode, { ...Object.fromEntries(named), ...length, ...close });
  if (request.complete || isHead) {
    response.end(isHead ? undefined : content);
    return;
  }
  response.write(content);
  await discardRest(request);
  response.end();
}

/** Closing a socket with unread bytes resets it, and the client may lose the answer that was on its way. */
function discardRest(request: IncomingMessage): Promise<void> {
  return new Promise((done) => {
    let left = MAX_DISCARDED_BYTES;
    const timer = setTimeout(done, LINGER_MS).unref();
    const finish = () => {
      clearTimeout(timer);
      done();
    };
    request.on("data", (chunk: Uint8Array) => {
      left -= chunk.length;
      if (left < 0) finish();
    });
    for (const event of ["end", "error", "close"]) request.once(event, finish);
    request.resume();
  });
}

/** Answers what is no HTTP request, or came too slowly, and closes. `answering` is what is under way on the socket. */
export function refuseConnection(error: Error, socket: Duplex, answering: ServerResponse | undefined): void {
  const untouched = answering === undefined || answering.writableFinished || !answering.headersSent;
  if (!socket.writable || !untouched) {
    socket.destroy();
    return;
  }
  socket.end(toWireText(toConnectionFault(error)), () => socket.destroy());
}

function toConnectionFault(error: Error): Fault {
  const code = "code" in error ? error.code : undefined;
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new Fault("REQUEST_INVALID", "the request took too long to arrive");
  if (code === "HPE_HEADER_OVERFLOW") return new Fault("REQUEST_INVALID", "the request line and headers are too long");
  return new Fault("REQUEST_INVALID", "this is not an HTTP request", { cause: error });
}

function toWireText(fault: Fault): string {
  const requestId = randomUUID();
  const { statusCode, headers, body = "" } = toProblem(fault, requestId);
  const lines = Object.entries({
    ...headers,
    "x-request-id": requestId,
    "content-length": Buffer.byteLength(body),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}`);
  return `HTTP/1.1 ${statusCode} Bad Request\r\n${lines.join("\r\n")}\r\n\r\n${body}`;
}
