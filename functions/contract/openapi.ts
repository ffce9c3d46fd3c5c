import * as z from "zod";
import { ROUTES, type Route } from "./api.ts";
import { FAULTS, type FaultCode } from "./fault.ts";
import { FaultCodeSchema, ViolationSchema } from "./job.ts";

/**
 * The OpenAPI 3.1 description, made from the very schemas that validate. Written by hand it would drift from them
 * with the first change.
 */

type Json = Readonly<Record<string, unknown>>;

const Problem = z
  .object({
    type: z.string(),
    title: z.string().meta({ description: "the phrase of the status" }),
    status: z.int(),
    code: FaultCodeSchema,
    detail: z.string().meta({ description: "what was wanted, what was got and what to do" }),
    request_id: z.string().meta({ description: "names the log entry; also in the header x-request-id" }),
    errors: z.array(ViolationSchema).optional().meta({ description: "every violation, for invalid input" }),
  })
  .meta({ id: "Problem", description: "RFC 9457 problem document" });

const COMPONENTS = "#/components/schemas/";
const SAFE_INTEGERS: ReadonlySet<unknown> = new Set([Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);

const REQUEST_ID = {
  "x-request-id": { description: "names the request in the log", schema: { type: "string" } },
};

/** Absent on one machine and with `auth` `none`, hence the empty alternative. */
const SECURITY = [{ sigv4: [] }, { token: [] }, {}];
const SECURITY_SCHEMES = {
  sigv4: {
    type: "apiKey",
    in: "header",
    name: "Authorization",
    description: "AWS Signature Version 4, service execute-api; not needed on one machine",
    "x-amazon-apigateway-authtype": "awsSigv4",
  },
  token: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "in place of a signature, where the service was deployed for tokens of an issuer",
  },
};

/** `version` is the product's own. */
export function toOpenApi(version: string): Json {
  const paths = new Map<string, Map<string, unknown>>();
  for (const route of ROUTES) {
    const operations = paths.get(route.path) ?? new Map<string, unknown>();
    operations.set(route.method.toLowerCase(), toOperation(route));
    paths.set(route.path, operations);
  }
  const described = Object.fromEntries([...paths].map(([path, operations]) => [path, Object.fromEntries(operations)]));
  return {
    openapi: "3.1.0",
    info: {
      title: "skillbroker",
      version,
      description: "Runs approved, digest-pinned skills as jobs and hands back the files they make.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: SECURITY,
    paths: described,
    components: { securitySchemes: SECURITY_SCHEMES, schemas: toComponents(described) },
  };
}

function toOperation(route: Route): Json {
  const parameters = [
    ...toPathParameters(route.path),
    ...toQueryParameters(route.query),
    ...toHeaderParameters(route.headers),
  ];
  return {
    operationId: route.operation,
    tags: [route.group],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: route.bodyOptional !== true, content: json(reference(route.body)) } }),
    responses: Object.fromEntries([
      [String(route.status), toSuccess(route)],
      ...toAccepted(route),
      ...toProblems(route.faults),
    ]),
  };
}

function toSuccess({ response, summary, status }: Route): Json {
  const location = { Location: { description: "the download link", schema: { type: "string", format: "uri" } } };
  return {
    description: summary,
    headers: status === 302 ? { ...REQUEST_ID, ...location } : REQUEST_ID,
    ...(response === undefined ? {} : { content: json(reference(response)) }),
  };
}

function toAccepted({ accepted, response }: Route): readonly [string, unknown][] {
  if (accepted === undefined || response === undefined) return [];
  const location = { Location: { description: "path of the report", schema: { type: "string" } } };
  const answer = { description: accepted, headers: { ...REQUEST_ID, ...location }, content: json(reference(response)) };
  return [["202", answer]];
}

/** One entry a status, with every code that it can carry. */
function toProblems(faults: readonly FaultCode[]): [string, unknown][] {
  const byStatus = new Map<number, FaultCode[]>();
  for (const code of [...faults, "DEFECT" as const]) {
    const { status } = FAULTS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const content = { "application/problem+json": { schema: reference(Problem) } };
  return [...byStatus].map(([status, codes]) => [
    String(status),
    { description: codes.join(", "), headers: REQUEST_ID, content },
  ]);
}

function toPathParameters(path: string): readonly unknown[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  return names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
}

/**
 * What a parameter means after parsing (`limit` is a number), since the description is read by people and generators.
 */
function toQueryParameters(query: z.ZodObject | undefined): readonly unknown[] {
  return Object.entries(query?.shape ?? {}).map(([name, schema]) => {
    const { description, ...plain } = plainSchema(schema, "output");
    return { name, in: "query", ...(description === undefined ? {} : { description }), schema: plain };
  });
}

function toHeaderParameters(headers: Route["headers"] = {}): readonly unknown[] {
  return Object.entries(headers).map(([name, description]) => ({
    name,
    in: "header",
    description,
    schema: { type: "string" },
  }));
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
  return plainSchema(schema, "input");
}

function plainSchema(schema: z.core.$ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...plain } = z.toJSONSchema(schema, { io, override });
  return plain;
}

/**
 * Takes out what says nothing: the bounds of every safe integer, keys that are strings, dates spelt out as a pattern.
 */
function override({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (SAFE_INTEGERS.has(jsonSchema.minimum)) delete jsonSchema.minimum;
  if (SAFE_INTEGERS.has(jsonSchema.maximum)) delete jsonSchema.maximum;
  if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
  if (jsonSchema.type === "object") delete jsonSchema.propertyNames;
}

/** The registered schemas that the paths reach, one from another. */
function toComponents(paths: Json): Json {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { io: "input", uri: (id) => COMPONENTS + id, override });
  const registered = new Map(
    Object.entries(schemas).map(([id, { $schema: _, $id: _id, id: _name, ...schema }]) => [id, schema] as const),
  );
  const reached = new Set(findReferences(paths));
  for (const id of reached) for (const next of findReferences(registered.get(id))) reached.add(next);
  return Object.fromEntries([...registered].filter(([id]) => reached.has(id)));
}

function findReferences(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key === "$ref" && typeof member === "string" ? [member.slice(COMPONENTS.length)] : findReferences(member),
  );
}
