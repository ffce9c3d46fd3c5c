import { readFileSync } from "node:fs";
import * as z from "zod";
import { Fault, type Violation } from "../functions/contract/fault.ts";
import { parseStrictJson } from "../functions/contract/json.ts";
import {
  type MCPServerConfig,
  nameOfSecret,
  parseMcpServers,
  type SecretReference,
  secretsIn,
} from "../functions/contract/mcp-server.ts";
import { decodeUtf8 } from "../functions/contract/text.ts";
import { toPointer } from "../functions/contract/violations.ts";

/** The operator's `mcp.json`, and what of it a deployed function cannot do though one machine could. */

/** A secret of a deployed function: a value that IAM guards. */
export type StoredSecret = { readonly store: "secretsmanager" | "ssm"; readonly name: string };

export type DeclaredServers = {
  /** In the order of their names; those that are disabled are left out. */
  readonly names: readonly string[];
  /** What is compiled into the functions: the file again, without the servers that are disabled. */
  readonly json: string;
  /** Every secret that the servers name, once, in ascending order. */
  readonly secrets: readonly StoredSecret[];
};

export type ServersFile = {
  readonly path: string;
  /** What the operator calls it, for messages. */
  readonly name: string;
  /** True when the settings name it: then it must be there. */
  readonly required: boolean;
  /** Names that no server may have: those of what is not lent by a server. */
  readonly reserved: readonly string[];
};

const MAX_DEPTH = 16;
/** As when there is no `mcp.json`. */
export const NO_SERVERS: DeclaredServers = { names: [], json: '{"mcpServers":{}}', secrets: [] };
const Entries = z.object({ mcpServers: z.record(z.string(), z.unknown()) });

/** Throws one `REQUEST_INVALID` that lists every server that is malformed or of no use in the cloud, and why. */
export function readServers(file: ServersFile): DeclaredServers {
  const json = parseStrictJson(readText(file), { maxDepth: MAX_DEPTH });
  if (!json.ok) throw new Fault("REQUEST_INVALID", `${file.name}: ${json.fault.message}`);
  const parsed = parseMcpServers(json.value, file);
  const entries = entriesOf(json.value);
  const malformed = parsed.ok ? [] : parsed.fault.violations;
  const violations = [...malformed, ...entries.flatMap(readAlone).flatMap(findCloudProblems)];
  if (!parsed.ok || violations.length > 0) {
    const lines = violations.map(({ path, message }) => `  ${path || "/"}: ${message}`).join("\n");
    throw new Fault("REQUEST_INVALID", `the MCP servers in ${file.name} cannot be deployed:\n${lines}`, { violations });
  }
  const names = parsed.value.map(({ name }) => name);
  const kept = new Map(entries);
  const mcpServers = Object.fromEntries(names.map((name) => [name, kept.get(name)]));
  return { names, json: JSON.stringify({ mcpServers }), secrets: storedSecrets(parsed.value) };
}

function readText({ path, name, required }: ServersFile): string {
  const bytes = readBytes(path);
  if (bytes === "missing" && !required) return NO_SERVERS.json;
  if (bytes === "missing") {
    throw new Fault(
      "REQUEST_INVALID",
      `there is no ${name}, which the settings name as "mcp"; write it or leave "mcp" out`,
    );
  }
  const text = bytes === "unreadable" ? undefined : decodeUtf8(bytes);
  if (text === undefined) throw new Fault("REQUEST_INVALID", `${name} cannot be read: a file of UTF-8 text expected`);
  return text;
}

function readBytes(path: string): Uint8Array | "missing" | "unreadable" {
  try {
    return readFileSync(path);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOENT" ? "missing" : "unreadable";
  }
}

function entriesOf(value: unknown): readonly (readonly [string, unknown])[] {
  const file = Entries.safeParse(value);
  return file.success ? Object.entries(file.data.mcpServers).toSorted(([a], [b]) => (a < b ? -1 : 1)) : [];
}

/** One server without the others, so that a mistake in one of them does not hide what is wrong with the rest. */
function readAlone([name, entry]: readonly [string, unknown]): readonly MCPServerConfig[] {
  const parsed = parseMcpServers({ mcpServers: Object.fromEntries([[name, entry]]) }, { reserved: [] });
  return parsed.ok ? parsed.value : [];
}

const LOOPBACK_HOST = /^(?:localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])\.?$/;

function findCloudProblems(server: MCPServerConfig): readonly Violation[] {
  const at = (...segments: readonly string[]) => toPointer(["mcpServers", server.name, ...segments]);
  if (server.transport === "stdio") {
    const message =
      'a command cannot run in Lambda; set "disabled": true, or name another file for the deployment by the context ' +
      'key "mcp" and leave this one to `skillbroker watch` on a machine of your own';
    return [{ path: at("command"), message }];
  }
  const violations: Violation[] = [];
  if (LOOPBACK_HOST.test(new URL(server.url).hostname)) {
    const message =
      "a deployed function does not reach this machine; give the address by which others reach the server";
    violations.push({ path: at("url"), message });
  }
  for (const [header, value] of server.headers) {
    const messages = secretsIn(value).flatMap((reference) => findSecretProblem(reference) ?? []);
    violations.push(...messages.map((message) => ({ path: at("headers", header), message })));
  }
  return violations;
}

/**
 * What a policy may name, then what only a request names: the version of a parameter. Any other character could reach
 * further than it says: `*` would open every secret of the account. An ARN has the six characters that Secrets Manager
 * adds, since a policy for one without them opens nothing.
 */
const STORED_NAMES = {
  secretsmanager:
    /^([A-Za-z0-9/_+=.@!-]+|arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@!-]+-[A-Za-z0-9]{6})$/,
  ssm: /^(\/?[A-Za-z0-9_.-]+(?:\/[A-Za-z0-9_.-]+)*)(?::[A-Za-z0-9_.-]+)?$/,
} as const;

/** Undefined for what no policy can name. */
function toStoredSecret({ store, name }: SecretReference): StoredSecret | undefined {
  if (store === "env") return undefined;
  const [, stored] = STORED_NAMES[store].exec(name) ?? [];
  return stored === undefined ? undefined : { store, name: stored };
}

function findSecretProblem(reference: SecretReference): string | undefined {
  const { store, name } = reference;
  const written = nameOfSecret(reference);
  if (toStoredSecret(reference) !== undefined) return undefined;
  if (store !== "env" && name.includes("#")) {
    return `${written}: a field of a secret cannot be named; keep each value in a secret of its own`;
  }
  if (store === "secretsmanager") return `${written}: the name of a secret, or its whole ARN, expected`;
  if (store === "ssm") return `${written}: the name of a parameter expected, such as /mcp/token`;
  return `${written}: a deployed function has no such variable; name a secret by \${secretsmanager:name} or \${ssm:/path}`;
}

function storedSecrets(servers: readonly MCPServerConfig[]): readonly StoredSecret[] {
  const values = servers.flatMap((server) => (server.transport === "http" ? [...server.headers.values()] : []));
  const secrets = values.flatMap(secretsIn).flatMap((reference) => toStoredSecret(reference) ?? []);
  const byReference = new Map(secrets.map((secret) => [`${secret.store}:${secret.name}`, secret]));
  return [...byReference].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, secret]) => secret);
}
