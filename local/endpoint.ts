import { createRequestSigner, regionOfEndpoint } from "../functions/aws/sign-request.ts";
import { type ApiClient, createApiClient, type SignRequest } from "./api-client.ts";
import { UsageError } from "./commands/command.ts";

/** A service elsewhere: on this machine as it is, beyond it over TLS and signed. */

type Env = Readonly<Record<string, string | undefined>>;

const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Throws a `UsageError` for what is no endpoint. */
export function connectToEndpoint(endpoint: string, env: Env): ApiClient {
  const url = readEndpoint(endpoint);
  const baseUrl = url.origin + url.pathname.replace(/\/+$/, "");
  return createApiClient({ baseUrl, sign: LOOPBACK_HOSTS.has(url.hostname) ? undefined : signerFor(url, env) });
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

function signerFor(url: URL, env: Env): SignRequest {
  const region = regionOfEndpoint(url.hostname) ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION);
  if (!region) throw new UsageError(`--endpoint: the region of ${url.hostname} is not known; set AWS_REGION`);
  return createRequestSigner({ region });
}
