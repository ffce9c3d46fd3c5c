import { type OperationName, ROUTES } from "../../contract/api.ts";
import type { RouteGroup } from "../../contract/auth.ts";
import { Fault, type Outcome, succeed } from "../../contract/fault.ts";

/**
 * Finds the operation for a method and a path. The path is matched here and not taken from the gateway's route key,
 * so that an unknown path gets our problem document and not the gateway's.
 */

export type Match = {
  readonly operation: OperationName;
  readonly group: RouteGroup;
  readonly params: ReadonlyMap<string, string>;
};

type Template = Omit<Match, "params"> & { readonly method: string; readonly segments: readonly string[] };

const TEMPLATES: readonly Template[] = ROUTES.map(({ operation, group, method, path }) => ({
  operation,
  group,
  method,
  segments: path.split("/"),
}));

/**
 * `ROUTE_NOT_FOUND`, or `METHOD_NOT_ALLOWED` with the methods that the path has in its message. `HEAD` is answered
 * wherever `GET` is (RFC 9110, 9.3.2).
 */
export function matchRoute(method: string, path: string): Outcome<Match> {
  const wanted = method === "HEAD" ? "GET" : method;
  const segments = path.split("/");
  const matching = TEMPLATES.flatMap((template) => {
    const params = matchSegments(template.segments, segments);
    return params === undefined ? [] : [{ template, params }];
  });
  const found = matching.find(({ template }) => template.method === wanted);
  if (found !== undefined) {
    const { template, params } = found;
    return succeed({ operation: template.operation, group: template.group, params });
  }
  if (matching.length === 0) {
    const fault = new Fault("ROUTE_NOT_FOUND", "nothing is at this path; GET /openapi.json lists what there is");
    return { ok: false, fault };
  }
  return { ok: false, fault: new MethodNotAllowed(matching.flatMap(({ template }) => methodsOf(template))) };
}

function methodsOf({ method }: Template): readonly string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}

/** Carries the methods that the path has, for the `Allow` header. */
export class MethodNotAllowed extends Fault {
  readonly allowed: readonly string[];

  constructor(allowed: readonly string[]) {
    super("METHOD_NOT_ALLOWED", `this path takes ${allowed.join(", ")}`);
    this.allowed = allowed;
  }
}

function matchSegments(
  template: readonly string[],
  segments: readonly string[],
): ReadonlyMap<string, string> | undefined {
  if (template.length !== segments.length) return undefined;
  const params = new Map<string, string>();
  for (const [index, wanted] of template.entries()) {
    const given = decodeSegment(segments[index] ?? "");
    if (given === undefined) return undefined;
    if (wanted.startsWith("{")) {
      if (given === "") return undefined;
      params.set(wanted.slice(1, -1), given);
    } else if (given !== wanted) return undefined;
  }
  return params;
}

function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    // A lone "%" names nothing that we have.
    return undefined;
  }
}
