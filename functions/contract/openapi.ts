import * as z from "zod";
import { ROUTES, type Route } from "./api.ts";
import { FAULTS, type FaultCode } from "./fault.ts";
import { ViolationSchema } from "./job.ts";

/** The OpenAPI 3.1 description, made from the very schemas that validate. */

const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(Object.keys(FAULTS)),
    detail: z.string(),
    request_id: z.string(),
    errors: z.array(ViolationSchema).optional(),
  })
  .meta({ id: "Problem", description: "RFC 9457 problem document" });

const COMPONENTS = "#/components/schemas/";

/** `version` is the product's own. */
export function toOpenApi(version: string): Readonly<Record<string, unknown>> {
  const paths = new Map<string, Map<string, unknown>>();
  for (const route of ROUTES) {
    const operations = paths.get(route.path) ?? new Map<string, unknown>();
    operations.set(route.method.toLowerCase(), toOperation(route));
    paths.set(route.path, operations);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "skillbroker",
      version,
      description: "Runs approved, digest-pinned skills as jobs and hands back the files they make.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths: Object.fromEntries([...paths].map(([path, operations]) => [path, Object.fromEntries(operations)])),
    components: { schemas: toComponents() },
  };
}

function toOperation(route: Route): Readonly<Record<string, unknown>> {
  const parameters = [...toPathParameters(route.path), ...toQueryParameters(route.query)];
  return {
    operationId: route.operation,
    summary: route.summary,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body === undefined ? {} : { requestBody: { required: true, content: json(reference(route.body)) } }),
    responses: Object.fromEntries([[String(route.status), toSuccess(route)], ...toProblems(route.faults)]),
  };
}

function toSuccess({ response, summary, status }: Route): Readonly<Record<string, unknown>> {
  const location = { Location: { description: "the download link", schema: { type: "string" } } };
  return {
    description: summary,
    ...(status === 302 ? { headers: location } : {}),
    ...(response === undefined ? {} : { content: json(reference(response)) }),
  };
}

/** One entry a status, with every code that it can carry. */
function toProblems(faults: readonly FaultCode[]): [string, unknown][] {
  const byStatus = new Map<number, FaultCode[]>();
  for (const code of [...faults, "DEFECT" as const]) {
    const { status } = FAULTS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const content = { "application/problem+json": { schema: { $ref: `${COMPONENTS}Problem` } } };
  return [...byStatus].map(([status, codes]) => [String(status), { description: codes.join(", "), content }]);
}

function toPathParameters(path: string): readonly unknown[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  return names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
}

function toQueryParameters(query: z.ZodObject | undefined): readonly unknown[] {
  if (query === undefined) return [];
  return Object.entries(query.shape).map(([name, schema]) => ({ name, in: "query", schema: plainSchema(schema) }));
}

function json(schema: unknown): unknown {
  return { "application/json": { schema } };
}

function reference(schema: z.ZodType): unknown {
  const id = z.globalRegistry.get(schema)?.id;
  if (id !== undefined) return { $ref: COMPONENTS + id };
  if (schema instanceof z.ZodUnion) {
    const options = schema.options.filter((option) => option instanceof z.ZodType);
    return { anyOf: options.map(reference) };
  }
  return plainSchema(schema);
}

function plainSchema(schema: z.core.$ZodType): unknown {
  const { $schema: _, ...plain } = z.toJSONSchema(schema, { io: "input" });
  return plain;
}

function toComponents(): Readonly<Record<string, unknown>> {
  z.globalRegistry.get(Problem);
  const { schemas } = z.toJSONSchema(z.globalRegistry, { io: "input", uri: (id) => COMPONENTS + id });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema: _, $id: _id, id: _name, ...schema }]) => [id, schema]),
  );
}
