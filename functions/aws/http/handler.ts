import middy, { type MiddlewareObj } from "@middy/core";
import type { Context } from "aws-lambda";
import { Fault } from "../../contract/fault.ts";
import type { Clock, Log } from "../../contract/ports.ts";
import { callerOf } from "./caller.ts";
import { OPERATIONS, type OperationContext } from "./operations.ts";
import { type HttpEvent, methodOf, pathOf, requestIdOf } from "./request.ts";
import { type HttpResponse, logLevelOf, toProblem, toResponse } from "./response.ts";
import { matchRoute } from "./router.ts";

/**
 * One onion for all HTTP routes: request id and log line outside, problem documents inside, the operation at the core.
 */

export type HttpHandlerOptions = OperationContext & {
  readonly log: Log;
  readonly clock: Clock;
  /** An answer is given so many ms before the function's time is over. */
  readonly answerMs: number;
};
/** Never rejects: whatever the event is, there is an answer. */
export type HttpHandler = (event: HttpEvent, context: Context) => Promise<HttpResponse>;

const MAX_LOGGED_PATH = 200;

export function createHttpHandler(options: HttpHandlerOptions): HttpHandler {
  const onion = middy<HttpEvent, HttpResponse>(inTime(options))
    .use(requestLog(options))
    .use(problemDocuments(options))
    .handler((event, context) => dispatch(event, requestIdOf(event, context), options));
  return async (given, context) => {
    const event = isObject(given) ? given : {};
    const response = await onion(event, context);
    return methodOf(event) === "HEAD" ? withoutBody(response) : response;
  };
}

/** An answer of ours before Lambda ends the function: what was begun may still be done, or not. */
function inTime({ answerMs }: HttpHandlerOptions) {
  return {
    timeoutEarlyInMillis: answerMs,
    timeoutEarlyResponse: () => {
      const message =
        "the request took too long, and what it asked for may still be done; GET /v1/jobs lists the jobs that ended, and a job with `Prefer: respond-async` may take its time";
      throw new Fault("REQUEST_TIMEOUT", message);
    },
  };
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** A refusal becomes a throw only here, at the edge, so that one middleware writes every problem document. */
async function dispatch(event: HttpEvent, requestId: string, context: OperationContext): Promise<HttpResponse> {
  const match = matchRoute(methodOf(event), pathOf(event));
  if (!match.ok) throw match.fault;
  const { operation, group, params } = match.value;
  const caller = callerOf(event, context.auth, group);
  if (!caller.ok) throw caller.fault;
  const reply = await OPERATIONS[operation]({ event, params, caller: caller.value, requestId }, context);
  if (!reply.ok) throw reply.fault;
  return toResponse(reply.value);
}

function withoutBody({ body: _, ...response }: HttpResponse): HttpResponse {
  return response;
}

type Middleware = MiddlewareObj<HttpEvent, HttpResponse>;

function problemDocuments({ log }: HttpHandlerOptions): Middleware {
  return {
    onError: (request) => {
      const requestId = requestIdOf(request.event, request.context);
      const level = logLevelOf(request.error);
      if (level !== "info") log(level, "request failed", { request_id: requestId, error: request.error });
      request.response = toProblem(request.error, requestId);
    },
  };
}

/** The onion runs `onError` from the inside out, so the response is there when this one sees it. */
function requestLog({ log, clock }: HttpHandlerOptions): Middleware {
  const started = new WeakMap<object, number>();
  const finish: NonNullable<Middleware["after"]> = (request) => {
    const { event, context, response, error } = request;
    if (response === null || response === undefined) return;
    const requestId = requestIdOf(event, context);
    response.headers = { ...response.headers, "x-request-id": requestId };
    const code = error instanceof Fault ? { code: error.code } : {};
    const duration_ms = Math.round(clock() - (started.get(event) ?? clock()));
    const asked = { method: methodOf(event).slice(0, 20), path: pathOf(event).slice(0, MAX_LOGGED_PATH) };
    log("info", "request", { request_id: requestId, ...asked, status: response.statusCode, duration_ms, ...code });
  };
  return {
    before: ({ event }) => {
      started.set(event, clock());
    },
    after: finish,
    onError: finish,
  };
}
