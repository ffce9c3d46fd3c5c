/**
 * What can go wrong, in one closed table: code -> who can put it right -> HTTP status.
 * The code is the wire contract and never changes its meaning. A status chosen at the place of failure would drift
 * from who is told and what is logged; here one row decides both.
 */

/** `caller`: change the request. `operator`: change the deployment. `us`: a defect of skillbroker. */
export type Remedy = "caller" | "operator" | "us";

type FaultRow = { readonly remedy: Remedy; readonly status: HttpErrorStatus };

/**
 * The statuses of faults with their phrases (RFC 9110), which a problem document of type `about:blank` is titled by.
 */
export const HTTP_ERROR_PHRASES = {
  400: "Bad Request",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
} as const;

export type HttpErrorStatus = keyof typeof HTTP_ERROR_PHRASES;

export const FAULTS = {
  REQUEST_INVALID: { remedy: "caller", status: 400 },
  TOOL_INPUT_INVALID: { remedy: "caller", status: 400 },
  TOOL_NOT_APPROVED: { remedy: "caller", status: 403 },
  TOOL_NOT_ALLOWED: { remedy: "caller", status: 403 },
  TOOL_DEFINITION_CHANGED: { remedy: "operator", status: 403 },
  ACCESS_DENIED: { remedy: "caller", status: 403 },
  ROUTE_NOT_FOUND: { remedy: "caller", status: 404 },
  TOOL_UNKNOWN: { remedy: "caller", status: 404 },
  SKILL_NOT_FOUND: { remedy: "caller", status: 404 },
  JOB_NOT_FOUND: { remedy: "caller", status: 404 },
  ARTIFACT_NOT_FOUND: { remedy: "caller", status: 404 },
  METHOD_NOT_ALLOWED: { remedy: "caller", status: 405 },
  IDEMPOTENCY_IN_PROGRESS: { remedy: "caller", status: 409 },
  JOB_CANCELLED: { remedy: "caller", status: 409 },
  JOB_FINISHED: { remedy: "caller", status: 409 },
  JOB_HELD: { remedy: "operator", status: 409 },
  ARTIFACT_EXPIRED: { remedy: "caller", status: 410 },
  PAYLOAD_TOO_LARGE: { remedy: "caller", status: 413 },
  OUTPUT_TOO_LARGE: { remedy: "caller", status: 413 },
  ARTIFACT_TOO_LARGE: { remedy: "caller", status: 413 },
  MEDIA_TYPE_UNSUPPORTED: { remedy: "caller", status: 415 },
  IDEMPOTENCY_MISMATCH: { remedy: "caller", status: 422 },
  ARTIFACT_INVALID: { remedy: "us", status: 422 },
  TOOL_FAILED: { remedy: "caller", status: 422 },
  QUOTA_EXCEEDED: { remedy: "caller", status: 429 },
  DEFECT: { remedy: "us", status: 500 },
  JOB_INTERRUPTED: { remedy: "us", status: 500 },
  SERVER_UNAVAILABLE: { remedy: "operator", status: 502 },
  REPOSITORY_REFUSED: { remedy: "operator", status: 503 },
  TOOL_UNAVAILABLE: { remedy: "operator", status: 503 },
  CALL_TIMEOUT: { remedy: "caller", status: 504 },
  REQUEST_TIMEOUT: { remedy: "us", status: 504 },
} as const satisfies Record<string, FaultRow>;

export type FaultCode = keyof typeof FAULTS;

export function isFaultCode(text: string): text is FaultCode {
  return Object.hasOwn(FAULTS, text);
}

/** One violation inside an input: `path` is a JSON Pointer into what was sent (`/calls/0/tool`). */
export type Violation = { readonly path: string; readonly message: string };

export type FaultOptions = {
  /** Every violation, for invalid input. */
  readonly violations?: readonly Violation[];
  /** The caught thing itself; it is logged and never leaves the service. */
  readonly cause?: unknown;
};

/**
 * The one error of the product. Returned inside an {@link Outcome} when it is a refusal, thrown when it is a bad
 * deploy. The message says what was wanted, what was got and what to do; it never holds a secret or an absolute path.
 */
export class Fault extends Error {
  override readonly name: string = "Fault";
  readonly code: FaultCode;
  readonly violations: readonly Violation[];

  constructor(code: FaultCode, message: string, options: FaultOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.violations = options.violations ?? [];
  }

  get status(): HttpErrorStatus {
    return FAULTS[this.code].status;
  }

  get remedy(): Remedy {
    return FAULTS[this.code].remedy;
  }
}

/** A tool's arguments were refused; thrown by handlers, turned into a value by the broker. */
export class ToolInputError extends Fault {
  override readonly name = "ToolInputError";

  constructor(message: string, violations: readonly Violation[] = []) {
    super("TOOL_INPUT_INVALID", message, { violations });
  }
}

/** A skill or its repository was refused. */
export class SkillError extends Fault {
  override readonly name = "SkillError";

  constructor(message: string, options: FaultOptions = {}) {
    super("REPOSITORY_REFUSED", message, options);
  }
}

/** A skill was asked for that the registry does not hold. */
export class SkillExecutionError extends Fault {
  override readonly name = "SkillExecutionError";
}

/** A refusal is a value: only defects and bad deploys are thrown. */
export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: Fault };

export function succeed<T>(value: T): Outcome<T> {
  return { ok: true, value };
}

export function refuse(code: FaultCode, message: string, options?: FaultOptions): { ok: false; fault: Fault } {
  return { ok: false, fault: new Fault(code, message, options) };
}

/** For what only a bad deploy refuses. */
export function orThrow<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw outcome.fault;
}

export type WireFault = { readonly code: FaultCode; readonly message: string; readonly errors?: readonly Violation[] };

/** A body of nothing but unknown keys would otherwise be answered with more bytes than a Lambda may return. */
const MAX_WIRE_VIOLATIONS = 50;
const MAX_WIRE_TEXT = 1_000;

/**
 * The only way out for an error: a {@link Fault} gives its code and message, anything else a fixed sentence,
 * because an unknown error's text may hold a path, a secret or another caller's data. Cut to a bounded size.
 */
export function toWireFault(error: unknown): WireFault {
  if (!(error instanceof Fault) || error.code === "DEFECT") {
    return { code: "DEFECT", message: "the service failed; its log has the cause, under the request id or the job id" };
  }
  const message = cut(error.message);
  if (error.violations.length === 0) return { code: error.code, message };
  const errors = error.violations
    .slice(0, MAX_WIRE_VIOLATIONS)
    .map((violation) => ({ path: cut(violation.path), message: cut(violation.message) }));
  return { code: error.code, message, errors };
}

/** Never half a surrogate pair. */
function cut(text: string): string {
  return text.length <= MAX_WIRE_TEXT ? text : `${text.slice(0, MAX_WIRE_TEXT).toWellFormed()}…`;
}
