import { createHash, createHmac } from "node:crypto";
import { Fault } from "../contract/fault.ts";

/**
 * Signs requests to a deployed API with the caller's AWS credentials (Signature Version 4, service `execute-api`).
 * The SDK's signer and credential chain are loaded at the first request, so that whoever signs nothing does not load
 * them; our own chain would know neither single sign-on nor roles.
 */

export type AwsCredentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
};

export type RequestSignerOptions = {
  readonly region: string;
  /** The SDK's default chain when left out: environment, shared files, single sign-on, container, instance. */
  readonly credentials?: (() => Promise<AwsCredentials>) | undefined;
};

const SERVICE = "execute-api";

/** The region in an API Gateway host name; undefined for a custom domain. */
export function regionOfEndpoint(hostname: string): string | undefined {
  return /^[a-z0-9-]+\.execute-api(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/.exec(hostname)?.[1];
}

/** Rejects with `ACCESS_DENIED` when no credentials can be found. */
export function createRequestSigner({
  region,
  credentials,
}: RequestSignerOptions): (request: Request) => Promise<Request> {
  let loaded: ReturnType<typeof loadSigner> | undefined;
  return async (request) => {
    loaded ??= loadSigner(region, credentials);
    const signer = await loaded;
    const url = new URL(request.url);
    const body = new Uint8Array(await request.clone().arrayBuffer());
    const signed = await signer.sign({
      method: request.method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: Object.fromEntries(
        [...new Set(url.searchParams.keys())].map((key) => [key, url.searchParams.getAll(key)]),
      ),
      headers: { ...Object.fromEntries(request.headers), host: url.host },
      body,
    });
    const { host: _, ...headers } = signed.headers;
    return new Request(request, { headers });
  };
}

async function loadSigner(region: string, credentials: RequestSignerOptions["credentials"]) {
  const [{ SignatureV4 }, chain] = await Promise.all([
    import("@smithy/signature-v4"),
    credentials === undefined ? import("@aws-sdk/credential-provider-node") : undefined,
  ]);
  const provide = credentials ?? chain?.defaultProvider();
  if (provide === undefined) throw new Fault("DEFECT", "there is no provider of credentials");
  return new SignatureV4({ service: SERVICE, region, sha256: Sha256, credentials: () => provided(provide) });
}

async function provided(provide: () => Promise<AwsCredentials>): Promise<AwsCredentials> {
  try {
    return await provide();
  } catch (error) {
    const message = "no AWS credentials were found to sign with; configure them as for the AWS command line";
    throw new Fault("ACCESS_DENIED", message, { cause: error });
  }
}

/** SHA-256, or HMAC-SHA-256 when given a secret, in the shape that the signer asks for. */
class Sha256 {
  readonly #hash: ReturnType<typeof createHash> | ReturnType<typeof createHmac>;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", toBytes(secret));
  }

  update(content: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(toBytes(content));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}

function toBytes(content: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof content === "string") return Buffer.from(content);
  if (content instanceof ArrayBuffer) return new Uint8Array(content);
  return new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
}
