import { type Outcome, refuse, succeed } from "../../contract/fault.ts";
import {
  type MCPServerConfig,
  nameOfSecret,
  type SecretReference,
  secretsIn,
  withSecrets,
} from "../../contract/mcp-server.ts";
import type { ReadSecret } from "../../contract/ports.ts";

/**
 * The headers or environment of a server with its secrets in place. The values leave this folder on the wire only: what
 * a server says back is passed through `redact` before anyone reads it.
 */
export type ServerSecrets = {
  /** Headers of a server over HTTP, variables of one over stdio; by name. */
  readonly values: ReadonlyMap<string, string>;
  /** What {@link ServerSecrets.redact} hides. */
  readonly hidden: readonly string[];
  readonly redact: (text: string) => string;
};

export type ResolveOptions = {
  /** True when what is remembered of the secrets will not do. */
  readonly fresh?: boolean | undefined;
};

/** `SERVER_UNAVAILABLE` that names the reference, never a value, when a secret cannot be had or cannot be sent. */
export async function resolveSecrets(
  config: MCPServerConfig,
  readSecret: ReadSecret,
  { fresh = false }: ResolveOptions = {},
): Promise<Outcome<ServerSecrets>> {
  const texts = textsOf(config);
  const secrets = new Map<string, string>();
  for (const reference of [...texts.values()].flatMap(secretsIn)) {
    const name = nameOfSecret(reference);
    if (secrets.has(name)) continue;
    const value = await read(reference, (wanted) => readSecret(wanted, { fresh }));
    if (!value.ok) return value;
    secrets.set(name, value.value);
  }
  const values = new Map<string, string>();
  for (const [name, text] of texts) {
    const value = withSecrets(text, (reference) => secrets.get(nameOfSecret(reference)) ?? "");
    // What fetch and spawn say of a value that they refuse quotes it.
    if (!isSendable(value, config.transport)) return refuseUnsendable(name, text);
    values.set(name, value);
  }
  const hidden = [...secrets.values(), ...[...values].flatMap(([name, value]) => wordsInConfidence(name, value))];
  return succeed({ values, hidden, redact: createRedactor(hidden) });
}

/**
 * Read once more, for a server that refused the ones that it was sent; undefined when there are no other ones. Both are
 * hidden then: the server knows both.
 */
export async function renewSecrets(
  config: MCPServerConfig,
  readSecret: ReadSecret,
  refused: ServerSecrets,
): Promise<ServerSecrets | undefined> {
  const read = await resolveSecrets(config, readSecret, { fresh: true });
  if (!read.ok) return undefined;
  const { values } = read.value;
  if ([...values].every(([name, value]) => refused.values.get(name) === value)) return undefined;
  const hidden = [...refused.hidden, ...read.value.hidden];
  return { values, hidden, redact: createRedactor(hidden) };
}

/** A header or variable of such a name holds a secret, even where somebody wrote it down instead of naming it. */
const CONFIDENTIAL_NAME = /authorization|cookie|credential|password|secret|token|api[-_]?key/i;

/** Without the word before it, such as `Bearer`, and with it. */
function wordsInConfidence(name: string, value: string): readonly string[] {
  return CONFIDENTIAL_NAME.test(name) ? [value, ...value.split(/[\s;,]+/)] : [];
}

/** What of a configuration may name secrets, by the header or variable that it stands in. */
export function textsOf(config: MCPServerConfig): ReadonlyMap<string, string> {
  return config.transport === "http" ? config.headers : config.env;
}

async function read(reference: SecretReference, readSecret: ReadSecret): Promise<Outcome<string>> {
  try {
    return await readSecret(reference);
  } catch (error) {
    return refuse("SERVER_UNAVAILABLE", `the secret ${nameOfSecret(reference)} cannot be read`, { cause: error });
  }
}

/** White space at the ends is what `fetch` takes off a header itself, and what a secret's file tends to end in. */
function isSendable(value: string, transport: MCPServerConfig["transport"]): boolean {
  return transport === "http" ? /^[\t\x20-\x7e]*$/.test(value.trim()) : !value.includes("\0");
}

function refuseUnsendable(name: string, text: string): Outcome<never> {
  const references = secretsIn(text).map(nameOfSecret).join(" and ");
  return refuse("SERVER_UNAVAILABLE", `"${name}" holds a character that cannot be sent; look at ${references}`);
}

/** A shorter text keeps no secret, and replacing it would garble what is said: "true" is a word of every definition. */
const MIN_REDACTED_LENGTH = 8;

/** Replaces each of the texts wherever it stands, the longest first, since one may be a part of another. */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const hidden = [...new Set(secrets.flatMap((secret) => [secret, secret.trim()]))]
    .filter((secret) => secret.length >= MIN_REDACTED_LENGTH)
    .toSorted((a, b) => b.length - a.length);
  return (text) => hidden.reduce((rest, secret) => rest.replaceAll(secret, "[secret]"), text);
}
