import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { Fault } from "../../contract/fault.ts";
import { type MCPServerConfig, nameOfSecret, secretsIn } from "../../contract/mcp-server.ts";
import { toVisible } from "../../contract/printable.ts";
import { firstCodePoints } from "../../contract/text.ts";
import { isAnswer } from "./raw-results.ts";
import { textsOf } from "./resolve-secrets.ts";
import type { WireTrouble } from "./wire.ts";

/**
 * What went wrong with a server, in words that an operator can act on. No text of the server is in them, because it may
 * echo what it was sent; what it said goes into the cause, which is logged and never leaves the service.
 */

export type FailureContext = {
  readonly config: MCPServerConfig;
  readonly redact: (text: string) => string;
  /** What the wire noted, if anything: it is nearer to the cause than what the SDK throws for it. */
  readonly trouble: WireTrouble | undefined;
  /** True when the time was up, and everything after it followed from that. */
  readonly expired: boolean;
  /** What a process wrote on standard error. */
  readonly lastWords: string;
};

export const OUT_OF_TIME = "did not answer in time";

export function explainFailure(error: unknown, context: FailureContext): Fault {
  const chain = causesOf(error);
  const message = context.expired ? OUT_OF_TIME : (context.trouble?.message ?? reasonOf(chain, context.config));
  return new Fault("SERVER_UNAVAILABLE", message, { cause: toCause(chain, context) });
}

/** The status with which an HTTP server refused; undefined for any other failure. */
export function httpStatusOf(error: unknown): number | undefined {
  return causesOf(error).find((cause) => SdkHttpError.isInstance(cause))?.status;
}

/** The server refused the credential, or missed one. */
export function isUnauthorized(error: unknown): boolean {
  return httpStatusOf(error) === 401;
}

const MAX_CAUSES = 8;

function causesOf(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  for (let next = error; next !== undefined && chain.length < MAX_CAUSES; ) {
    chain.push(next);
    next = next instanceof Error ? next.cause : undefined;
  }
  return chain;
}

function reasonOf(chain: readonly unknown[], config: MCPServerConfig): string {
  for (const error of chain) {
    const reason = reasonOfOne(error, config);
    if (reason !== undefined) return reason;
  }
  return "answered with what the protocol does not provide for";
}

function reasonOfOne(error: unknown, config: MCPServerConfig): string | undefined {
  if (SdkHttpError.isInstance(error)) return reasonOfStatus(error.status, config);
  if (isAnswer(error)) return `answered with JSON-RPC error ${error.code}`;
  if (ProtocolError.isInstance(error)) return "ended the connection without an answer";
  if (SdkError.isInstance(error)) return SDK_REASONS.get(error.code);
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code !== "string" || !/^[A-Z][A-Z0-9_]{1,60}$/.test(code)) return undefined;
  return config.transport === "http" ? `cannot be reached (${code})` : `its process cannot be used (${code})`;
}

const SDK_REASONS: ReadonlyMap<string, string> = new Map([
  [SdkErrorCode.ConnectionClosed, "ended the connection"],
  [SdkErrorCode.RequestTimeout, OUT_OF_TIME],
  [SdkErrorCode.InvalidResult, "answered with what is no result of the protocol"],
  [SdkErrorCode.UnsupportedResultType, "asks for input in return, which is not offered here"],
]);

function reasonOfStatus(status: number, config: MCPServerConfig): string {
  if (status === 401) return `refused the credential (HTTP 401); check ${credentialOf(config)}`;
  if (status === 403) return `denied access (HTTP 403); check what ${credentialOf(config)} allows`;
  return `answered HTTP ${status}`;
}

/** Where an operator looks: the headers by name, with the secrets that they are made of. */
function credentialOf(config: MCPServerConfig): string {
  const headers = [...textsOf(config)].map(([name, text]) => {
    const secrets = secretsIn(text).map(nameOfSecret).join(", ");
    return secrets === "" ? `"${name}"` : `"${name}" (${secrets})`;
  });
  return headers.length === 0 ? "its headers, of which it has none," : `its header ${headers.join(" and ")}`;
}

const MAX_CAUSE_LENGTH = 1_000;

/** Redacted before it is cut: half a secret would not be found. */
function toCause(chain: readonly unknown[], { redact, lastWords }: FailureContext): Error {
  const said = chain.map((error) => (error instanceof Error ? error.message : String(error))).join("; ");
  const shown = firstCodePoints(redact(said), MAX_CAUSE_LENGTH);
  const end = redact(lastWords).slice(-MAX_CAUSE_LENGTH);
  return new Error(toVisible(end === "" ? shown : `${shown}; standard error: ${end}`));
}
