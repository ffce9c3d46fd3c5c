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
import { isReachable } from "./reachable.ts";
import { MAX_SECRET_BYTES, type StoredSecret, toPolicyBytes } from "./secret-arns.ts";
import type { Warning } from "./warnings.ts";

/** The operator's `mcp.json`, and what of it a deployed function cannot do though one machine could. */

export type DeclaredServers = {
  /** In the order of their names; those that are disabled are left out. */
  readonly names: readonly string[];
  /** What is put beside the code of the functions: the file again, without the servers that are disabled. */
  readonly json: string;
  /** Every secret that the servers name, once, in ascending order. */
  readonly secrets: readonly StoredSecret[];
  /** What looks like a secret and stands there for everybody to read. */
  readonly warnings: readonly Warning[];
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
export const NO_SERVERS: DeclaredServers = { names: [], json: '{"mcpServers":{}}', secrets: [], warnings: [] };
const Entries = z.object({ mcpServers: z.record(z.string(), z.unknown()) });

/** The declared servers, and everything that is wrong with them. */
export function findServers(source: ServersSource, { reserved }: Reserved): FoundServers {
  const read = readSource(source);
  if (!read.ok)
    return { ...NO_SERVERS, declared: [], problems: [{ path: pathOf(source), message: read.fault.message }] };
  const parsed = parseMcpServers(read.value, { reserved });
  const entries = entriesOf(read.value);
  const malformed = parsed.ok ? [] : parsed.fault.violations.map((each) => placed(each, source));
  const alone = entries.flatMap(readAlone);
  const problems = [
    ...malformed,
    ...alone.flatMap((server) => findCloudProblems(server, source)),
    ...findTooManySecrets(alone, source),
  ];
  const servers = parsed.ok && problems.length === 0 ? parsed.value : [];
  const kept = new Map(entries);
  const mcpServers = Object.fromEntries(servers.map(({ name }) => [name, kept.get(name)]));
  return {
    names: servers.map(({ name }) => name),
    declared: entries.map(([name]) => name),
    problems,
    json: JSON.stringify({ mcpServers }),
    secrets: storedSecrets(servers),
    warnings: servers.flatMap(findLiteralCredentials),
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

/** By what the operator can name other servers. */
function settingOf(source: ServersSource): string {
  return "path" in source ? (source.namedBy ?? "mcp") : "mcpServers";
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

/**
 * One server without the others, and when it cannot be read each of its members without the others, so that a mistake
 * does not hide what else is wrong.
 */
function readAlone([name, entry]: readonly [string, unknown]): readonly MCPServerConfig[] {
  const parse = (alone: unknown) => {
    const parsed = parseMcpServers({ mcpServers: Object.fromEntries([[name, alone]]) }, { reserved: [] });
    return parsed.ok ? parsed.value : undefined;
  };
  return parse(entry) ?? membersOf(entry).flatMap((member) => parse(member) ?? []);
}

/** Members are read beside an address that there is nothing wrong with. */
const ANY_URL = "https://known-later.invalid/";
const Members = z.looseObject({
  url: z.unknown().optional(),
  command: z.unknown().optional(),
  headers: z.record(z.string(), z.unknown()).catch({}).default({}),
  disabled: z.unknown().optional(),
});

function membersOf(entry: unknown): readonly unknown[] {
  const { data } = Members.safeParse(entry);
  if (data === undefined || data.disabled === true) return [];
  if (data.command !== undefined) return [{ command: data.command }];
  const headers = Object.entries(data.headers).map((header) => ({
    url: ANY_URL,
    headers: Object.fromEntries([header]),
  }));
  return [{ url: data.url }, ...headers];
}

/** A role takes only so much, and that would be told in the midst of a deployment. */
function findTooManySecrets(servers: readonly MCPServerConfig[], source: ServersSource): readonly Violation[] {
  const secrets = storedSecrets(servers);
  const bytes = toPolicyBytes(secrets);
  if (bytes <= MAX_SECRET_BYTES) return [];
  const message =
    `the ${secrets.length} secrets take ${bytes} bytes of a role's policy, at most ${MAX_SECRET_BYTES} fit; name fewer, ` +
    "give them shorter names, or let several servers have one";
  return [{ path: pathOf(source), message }];
}

function findCloudProblems(server: MCPServerConfig, source: ServersSource): readonly Violation[] {
  const at = (...segments: readonly string[]) => toPointer(["mcpServers", server.name, ...segments]);
  if (server.transport === "stdio") {
    const message =
      `a command cannot run in Lambda; set "disabled": true, or give the deployment other servers by "${settingOf(source)}" and ` +
      "leave this one to `skillbroker watch` on a machine of your own";
    return [{ path: at("command"), message }];
  }
  const violations: Violation[] = [];
  if (!isReachable(new URL(server.url).hostname)) {
    const message =
      "a deployed function does not reach this machine or a private network; give the address by which the internet " +
      "reaches the server";
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

const CREDENTIAL = /auth|cookie|credential|key|passw|secret|sig|token/i;

/** Of what a header or a query holds in clear, only the name is told. */
function findLiteralCredentials(server: MCPServerConfig): readonly Warning[] {
  if (server.transport === "stdio") return [];
  const at = (...segments: readonly string[]) => toPointer(["mcpServers", server.name, ...segments]);
  const headers = [...server.headers].filter(
    ([name, value]) => CREDENTIAL.test(name) && value.trim() !== "" && secretsIn(value).length === 0,
  );
  const fields = [...new URL(server.url).searchParams].filter(([name, value]) => CREDENTIAL.test(name) && value !== "");
  return [
    ...fields.map(([name]) => toWarning(at("url"), `the field "${name}" ${IN_CLEAR_IN_URL}`)),
    ...headers.map(([name]) => toWarning(at("headers", name), IN_CLEAR)),
  ];
}

const IN_CLEAR_IN_URL =
  "looks like a secret, and addresses are deployed in clear, logged and shown; send it in a header that names a secret";
const IN_CLEAR = "looks like a secret that is deployed in clear; name one by ${secretsmanager:name} or ${ssm:/path}";

function toWarning(path: string, message: string): Warning {
  return { id: "skillbroker:literal-credential", path, message };
}
