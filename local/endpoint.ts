import { createRequestSigner, regionOfEndpoint } from "../functions/aws/sign-request.ts";
import { type ApiClient, createApiClient, type SignRequest } from "./api-client.ts";
import { UsageError } from "./commands/command.ts";

/** A service elsewhere: on this machine as it is, beyond it over TLS, with a token where there is one, else signed. */

type Env = Readonly<Record<string, string | undefined>>;

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Throws a `UsageError` for what is no endpoint. */
export function connectToEndpoint(endpoint: string, env: Env): ApiClient {
  const url = readEndpoint(endpoint);
  const baseUrl = url.origin + url.pathname.replace(/\/+$/, "");
  return createApiClient({ baseUrl, sign: signerFor(url, env) });
}

function readEndpoint(endpoint: string): URL {
  const url = URL.parse(endpoint);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--endpoint: "${endpoint}" is no URL; http://127.0.0.1:8787 or https://… expected`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new UsageError("--endpoint: only scheme, host, port and path belong into it");
  }
  if (url.protocol === "http:" && !LOOPBACK_HOSTS.has(url.hostname)) {
    throw new UsageError("--endpoint: beyond this machine it must be https");
  }
  return url;
}

/**
 * None for this machine. A token is in the environment and not among the words, which everybody on the machine can
 * read. Throws a `UsageError` when it cannot be told how to sign.
 */
export function signerFor(url: URL, env: Env): SignRequest | undefined {
  if (LOOPBACK_HOSTS.has(url.hostname)) return undefined;
  const token = env.SKILLBROKER_TOKEN;
  if (token) return (request) => withToken(request, token);
  const region = regionOfEndpoint(url.hostname) ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION);
  if (!region) throw new UsageError(`--endpoint: the region of ${url.hostname} is not known; set AWS_REGION`);
  return createRequestSigner({ region });
}

async function withToken(request: Request, token: string): Promise<Request> {
  try {
    request.headers.set("authorization", `Bearer ${token}`);
    return request;
  } catch {
    // The reason would show the token.
    throw new UsageError("SKILLBROKER_TOKEN is no token: it holds characters that no header can carry");
  }
}
