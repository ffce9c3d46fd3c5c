import type * as z from "zod";
import { type Outcome, refuse, succeed } from "../contract/fault.ts";
import { parseStrictJson } from "../contract/json.ts";
import { toViolations } from "../contract/violations.ts";

/** What stands in a queue may have been put there by anybody who may send: it is read as a request is. */

const MAX_DEPTH = 32;

/** `REQUEST_INVALID`, with every violation, for what does not fit the schema or is of a server that is not declared. */
export function readMessage<T extends z.ZodType<{ readonly server: string }>>(
  body: string,
  { schema, servers }: { readonly schema: T; readonly servers: ReadonlySet<string> },
): Outcome<z.infer<T>> {
  const json = parseStrictJson(body, { maxDepth: MAX_DEPTH });
  if (!json.ok) return json;
  const parsed = schema.safeParse(json.value);
  if (parsed.success) return checkServer(parsed.data.server, servers) ?? succeed(parsed.data);
  const violations = toViolations(parsed.error);
  const [first] = violations;
  const message = `the message is not valid: ${first?.path || "/"} ${first?.message}`;
  return refuse("REQUEST_INVALID", message, { violations });
}

/** The refusal, under the path, of a server that is not declared; undefined for one that is. */
export function checkServer(
  server: string,
  servers: ReadonlySet<string>,
  path = "/server",
): Outcome<never> | undefined {
  if (servers.has(server)) return undefined;
  const declared = servers.size === 0 ? "none is declared" : `declared are ${[...servers].sort().join(", ")}`;
  const message = `no MCP server is called "${server}"; ${declared}`;
  return refuse("REQUEST_INVALID", message, { violations: [{ path, message }] });
}
