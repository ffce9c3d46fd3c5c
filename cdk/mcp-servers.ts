import { readFileSync } from "node:fs";
import * as z from "zod";
import { type Outcome, refuse, succeed, type Violation } from "../functions/contract/fault.ts";
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
  /** What is put beside the code of the functions: the file again, without the servers that are disabled. */
  readonly json: string;
  /** Every secret that the servers name, once, in ascending order. */
  readonly secrets: readonly StoredSecret[];
};

export type FoundServers = DeclaredServers & {
  /** Names of all that are declared, those that are disabled too. */
  readonly declared: readonly string[];
  /** Every server that is malformed or of no use in the cloud, and why, by JSON Pointer. */
  readonly problems: readonly Violation[];
};

/** Where the servers are declared: in a file, or in a value of the shape of that file. */
export type ServersSource = ServersFile | { readonly value: unknown };
export type ServersFile = {
  readonly path: string;
  /** What the operator calls it, for messages. */
  readonly name: string;
  /** The setting that names it, and without which it need not be there. */
  readonly namedBy?: string | undefined;
};
/** Names that no server may have: those of what is not lent by a server. */
export type Reserved = { readonly reserved: readonly string[] };

const MAX_DEPTH = 16;
/** As when there is no `mcp.json`. */
export const NO_SERVERS: DeclaredServers = { names: [], json: '{"mcpServers":{}}', secrets: [] };
const Entries = z.object({ mcpServers: z.record(z.string(), z.unknown()) });

/** The declared servers, and everything that is wrong with them. */
export function findServers(source: ServersSource, { reserved }: Reserved): FoundServers {
  const read = readSource(source);
  if (!read.ok)
    return { ...NO_SERVERS, declared: [], problems: [{ path: pathOf(source), message: read.fault.message }] };
  const parsed = parseMcpServers(read.value, { reserved });
  const entries = entriesOf(read.value);
  const malformed = parsed.ok ? [] : parsed.fault.violations.map((each) => placed(each, source));
  const problems = [...malformed, ...entries.flatMap(readAlone).flatMap(findCloudProblems)];
  const servers = parsed.ok && problems.length === 0 ? parsed.value : [];
  const kept = new Map(entries);
  const mcpServers = Object.fromEntries(servers.map(({ name }) => [name, kept.get(name)]));
  return {
    names: servers.map(({ name }) => name),
    declared: entries.map(([name]) => name),
    problems,
    json: JSON.stringify({ mcpServers }),
    secrets: storedSecrets(servers),
  };
}

function readSource(source: ServersSource): Outcome<unknown> {
  if ("value" in source) return toPlainJson(source.value);
  const text = readText(source);
  if (!text.ok) return text;
  const json = parseStrictJson(text.value, { maxDepth: MAX_DEPTH });
  return json.ok ? json : refuse("REQUEST_INVALID", `${source.name}: ${json.fault.message}`);
}

/** As it would stand in the file: what is left out there is left out here. */
function toPlainJson(value: unknown): Outcome<unknown> {
  try {
    return succeed(JSON.parse(JSON.stringify(value)));
  } catch {
    return refuse("REQUEST_INVALID", "an object of plain texts and numbers expected, as JSON can write it");
  }
}

/** What is wrong with the file as a whole is told by its name: its other words could be taken for settings. */
function placed({ path, message }: Violation, source: ServersSource): Violation {
  if (!("path" in source) || path.startsWith("/mcpServers/")) return { path, message };
  return { path: pathOf(source), message: `${source.name}: ${path || "/"}: ${message}` };
}

function pathOf(source: ServersSource): string {
  return toPointer(["path" in source ? (source.namedBy ?? source.name) : "mcpServers"]);
}

function readText({ path, name, namedBy }: ServersFile): Outcome<string> {
  const bytes = readBytes(path);
  if (bytes === "missing" && namedBy === undefined) return succeed(NO_SERVERS.json);
  if (bytes === "missing") {
    const message = `there is no ${name}, which the settings name as "${namedBy}"; write it or leave "${namedBy}" out`;
    return refuse("REQUEST_INVALID", message);
  }
  const text = bytes === "unreadable" ? undefined : decodeUtf8(bytes);
  if (text !== undefined) return succeed(text);
  return refuse("REQUEST_INVALID", `${name} cannot be read: a file of UTF-8 text expected`);
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
