import { Fault } from "../functions/contract/fault.ts";

/** The service over HTTP, as any other caller sees it. */

export type ApiAnswer = { readonly status: number; readonly body: unknown };

export type ApiClient = {
  /** Throws `SERVER_UNAVAILABLE` when nobody answers, or answers with something that is not JSON. */
  send(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<ApiAnswer>;
  /** Bytes behind a download link. Throws when the link does not give them, or gives more than `maxBytes`. */
  download(url: string, limits: { readonly maxBytes: number }): Promise<Uint8Array>;
  close(): Promise<void>;
};

/** Signs a request in place of the caller; the identity for a service that asks for none. */
export type SignRequest = (request: Request) => Promise<Request>;

export type ApiClientOptions = {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly sign?: SignRequest | undefined;
  readonly onClose?: (() => Promise<void>) | undefined;
};

const TIMEOUT_MS = 60_000;
/** A gateway answers with at most 10 MB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

export function createApiClient({ baseUrl, sign = async (request) => request, onClose }: ApiClientOptions): ApiClient {
  return {
    send: async (method, path, body, headers = {}) => {
      const content =
        body === undefined
          ? { headers }
          : { body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" } };
      const request = await sign(new Request(`${baseUrl}${path}`, { method, redirect: "manual", ...content }));
      return fetching(request.url, async (signal) => {
        const response = await fetch(request, { signal });
        const bytes = await readCapped(response, MAX_ANSWER_BYTES);
        return { status: response.status, body: parseAnswer(bytes, response.status) };
      });
    },
    download: (url, { maxBytes }) =>
      fetching(url, async (signal) => {
        const response = await fetch(url, { signal });
        if (!response.ok) throw toLinkFault(response.status);
        return readCapped(response, maxBytes);
      }),
    close: async () => onClose?.(),
  };
}

/** `fetch` fails with "fetch failed", whatever the reason; the reason is what a reader needs. */
async function fetching<T>(url: string, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
  try {
    return await act(AbortSignal.timeout(TIMEOUT_MS));
  } catch (error) {
    if (error instanceof Fault) throw error;
    const host = URL.parse(url)?.host ?? "the endpoint";
    throw new Fault("SERVER_UNAVAILABLE", `no answer from ${host}: ${reasonOf(error)}`, { cause: error });
  }
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "nothing listens there"],
  ["ENOTFOUND", "there is no such host"],
  ["EAI_AGAIN", "the name could not be looked up"],
  ["ECONNRESET", "the connection was cut"],
  ["UND_ERR_SOCKET", "the connection was cut"],
]);

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown reason";
  if (error.name === "TimeoutError") return `nothing came within ${TIMEOUT_MS / 1000} seconds`;
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
  return REASONS.get(code) ?? (cause.message || code);
}

function toLinkFault(status: number): Fault {
  // One machine says 410; S3 says 403 to a link that is over or was changed.
  if (status === 410 || status === 403) {
    return new Fault("ARTIFACT_EXPIRED", "the download link has expired or was changed; ask for the job again");
  }
  return new Fault("ARTIFACT_NOT_FOUND", `the download link answered ${status}`);
}

async function readCapped(response: Response, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw new Fault("SERVER_UNAVAILABLE", `more than the ${maxBytes} bytes expected were sent`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseAnswer(bytes: Uint8Array, status: number): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch (error) {
    const message = `the service answered ${status} with something that is not JSON; is the endpoint right?`;
    throw new Fault("SERVER_UNAVAILABLE", message, { cause: error });
  }
}
