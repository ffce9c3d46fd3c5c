import type { APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { FAULTS, Fault, HTTP_ERROR_PHRASES, toWireFault } from "../../contract/fault.ts";
import { MethodNotAllowed } from "./router.ts";

/** Answers in the shape that API Gateway (payload 2.0) wants. */

export type HttpResponse = APIGatewayProxyStructuredResultV2;

/** What an operation answers: `body` is JSON, absent for an answer without one. */
export type Reply = {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

const ALWAYS = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

export function toResponse({ status, body, headers }: Reply): HttpResponse {
  if (body === undefined) return { statusCode: status, headers: { ...ALWAYS, ...headers } };
  const type = { "content-type": "application/json" };
  return { statusCode: status, headers: { ...ALWAYS, ...type, ...headers }, body: JSON.stringify(body) };
}

/** RFC 9457. Anything but a {@link Fault} becomes `DEFECT` with a fixed sentence: no stack, path or cause leaves. */
export function toProblem(error: unknown, requestId: string): HttpResponse {
  const { code, message, errors } = toWireFault(error);
  const { status } = FAULTS[code];
  const problem = {
    type: "about:blank",
    title: HTTP_ERROR_PHRASES[status],
    status,
    code,
    detail: message,
    request_id: requestId,
    ...(errors === undefined ? {} : { errors }),
  };
  const allow = error instanceof MethodNotAllowed ? { allow: error.allowed.join(", ") } : {};
  return {
    statusCode: status,
    headers: { ...ALWAYS, ...allow, "content-type": "application/problem+json" },
    body: JSON.stringify(problem),
  };
}

/** Who must act decides how loud it is: `info` for the caller, `warn` for the operator, `error` for us. */
export function logLevelOf(error: unknown): "info" | "warn" | "error" {
  if (!(error instanceof Fault) || error.remedy === "us") return "error";
  return error.remedy === "operator" ? "warn" : "info";
}
