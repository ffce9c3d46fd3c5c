import * as z from "zod";
import { type Outcome, refuse, succeed, type Violation } from "./fault.ts";
import { digestOfJson } from "./json.ts";
import { BUILTIN_ORIGIN, LOCAL_BUNDLE } from "./tool.ts";
import { toPointer, toViolations } from "./violations.ts";

/**
 * Which MCP servers lend tools, from `mcp.json` in the usual `mcpServers` shape; secrets are named in it, never
 * written.
 */

/** No `/`: the name is the left half of a ref. Begins with a letter or digit, since it also becomes part of keys. */
export const ServerName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "must be 1 to 64 of A-Z a-z 0-9 _ . - and begin with a letter or digit")
  .meta({ id: "ServerName", examples: ["github"] });

/** `${env:NAME}`, `${secretsmanager:name}` or `${ssm:/path}`. */
const SECRET_REFERENCE = /\$\{(env|secretsmanager|ssm):([^{}\s]{1,512})\}/g;
export type SecretReference = { readonly store: "env" | "secretsmanager" | "ssm"; readonly name: string };

/** The reference as it is written in `mcp.json`. */
export function nameOfSecret({ store, name }: SecretReference): string {
  return `\${${store}:${name}}`;
}

/** The secrets that a text names, in order. */
export function secretsIn(text: string): readonly SecretReference[] {
  return [...text.matchAll(SECRET_REFERENCE)].map(([, store, name = ""]) => ({ store: toStore(store), name }));
}

/** The text with each reference replaced by what `secretOf` gives. */
export function withSecrets(text: string, secretOf: (reference: SecretReference) => string): string {
  return text.replace(SECRET_REFERENCE, (_, store: string, name: string) => secretOf({ store: toStore(store), name }));
}

function toStore(text: string | undefined): SecretReference["store"] {
  return text === "secretsmanager" || text === "ssm" ? text : "env";
}

/** A text that may name secrets. A `${` that begins no reference is a misspelt one, and would be sent as it stands. */
const SecretText = z
  .string()
  .max(8192)
  .refine(
    (text) => !text.replace(SECRET_REFERENCE, "").includes("${"),
    "a secret is named by ${env:NAME}, ${secretsmanager:name} or ${ssm:/path}",
  );

/** A text that is used as it stands. Addresses and command lines are logged and shown, so no secret is put into one. */
const PlainText = z
  .string()
  .refine((text) => !text.includes("${"), 'nothing is put in place of "${" here; a secret goes into headers or env');

const HeaderName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, "must be the name of an HTTP header");
const HeaderValue = SecretText.regex(/^[\t\x20-\x7e]*$/, "must be printable ASCII");

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Headers carry tokens: beyond this machine they travel by TLS only. */
const ServerUrl = PlainText.refine((text) => {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "" || url.hash !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK_HOSTS.has(url.hostname));
}, "must be an https URL without user, password and fragment (http on this machine only)");

const StdioEntry = z.strictObject({
  type: z.literal("stdio").optional(),
  command: PlainText.min(1).max(1024),
  args: z.array(PlainText.max(8192)).max(256).default([]),
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), SecretText).default({}),
  cwd: PlainText.min(1).max(1024).optional(),
  disabled: z.boolean().optional(),
});

const HttpEntry = z.strictObject({
  type: z.enum(["http", "streamable-http"], 'must be "http" (Streamable HTTP); "sse" is not spoken').optional(),
  url: ServerUrl,
  headers: z.record(HeaderName, HeaderValue).default({}),
  disabled: z.boolean().optional(),
});

export type MCPServerConfig = { readonly name: string } & (
  | {
      readonly transport: "stdio";
      readonly command: string;
      readonly args: readonly string[];
      /** Added to the few variables that a server always gets (`PATH`, `HOME`, …). */
      readonly env: ReadonlyMap<string, string>;
      readonly cwd?: string | undefined;
    }
  | { readonly transport: "http"; readonly url: string; readonly headers: ReadonlyMap<string, string> }
);

const McpFile = z.strictObject({ mcpServers: z.record(z.string(), z.unknown()) });

/**
 * The servers in the order of their names, those that are `disabled` left out. Every mistake together, each by its JSON
 * Pointer. `reserved` are the names of what is not lent by a server (`builtin`, the repositories): a server of such a
 * name would pass for the operator's own.
 */
export function parseMcpServers(
  value: unknown,
  { reserved }: { readonly reserved: readonly string[] },
): Outcome<readonly MCPServerConfig[]> {
  const file = McpFile.safeParse(value);
  if (!file.success) return refuseAll(toViolations(file.error));
  const entries = Object.entries(file.data.mcpServers).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const taken = new Map(reserved.map((name) => [name.toLowerCase(), `"${name}" is not the name of a server`]));
  const servers: MCPServerConfig[] = [];
  const violations: Violation[] = [];
  for (const [name, entry] of entries) {
    const path = toPointer(["mcpServers", name]);
    const named = ServerName.safeParse(name);
    if (!named.success) violations.push({ path, message: `the name ${named.error.issues[0]?.message}` });
    const twin = taken.get(name.toLowerCase());
    if (twin !== undefined) violations.push({ path, message: `the name is taken: ${twin}` });
    taken.set(name.toLowerCase(), `"${name}" differs by case at most`);
    const schema = isStdio(entry) ? StdioEntry : HttpEntry;
    const parsed = schema.safeParse(entry);
    if (!parsed.success) {
      violations.push(...toViolations(parsed.error).map((each) => ({ ...each, path: path + each.path })));
    } else if (parsed.data.disabled !== true) servers.push(toConfig(name, parsed.data));
  }
  return violations.length === 0 ? succeed(servers) : refuseAll(violations);
}

function isStdio(entry: unknown): boolean {
  return typeof entry === "object" && entry !== null && "command" in entry;
}

function toConfig(name: string, entry: z.infer<typeof StdioEntry> | z.infer<typeof HttpEntry>): MCPServerConfig {
  if ("url" in entry) {
    return { name, transport: "http", url: entry.url, headers: new Map(Object.entries(entry.headers)) };
  }
  const { command, args, env, cwd } = entry;
  return { name, transport: "stdio", command, args, env: new Map(Object.entries(env)), cwd };
}

/**
 * What no server may be called: it would pass for what is written in the source or read from the operator's own files.
 */
export function reservedServerNames(repositories: readonly string[]): readonly string[] {
  return [...new Set([BUILTIN_ORIGIN, LOCAL_BUNDLE, ...repositories])];
}

function refuseAll(violations: readonly Violation[]): Outcome<never> {
  const lines = violations.map(({ path, message }) => `  ${path || "/"}: ${message}`).join("\n");
  return refuse("REQUEST_INVALID", `the MCP servers are not valid:\n${lines}`, { violations });
}

/**
 * What a list of tools depends on beside the server: where it was fetched and by which authority (names of secrets, not
 * their values). A list that was fetched under another configuration counts as never fetched.
 */
export function digestOfConfig(config: MCPServerConfig): string {
  const { name: _, ...rest } = config;
  const plain = Object.entries(rest).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return [[key, value instanceof Map ? Object.fromEntries(value) : value] as const];
  });
  return digestOfJson(Object.fromEntries(plain));
}
