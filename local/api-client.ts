import { Fault } from "../functions/contract/fault.ts";

/** The service over HTTP, as any other caller sees it. */

export type ApiAnswer = { readonly status: number; readonly body: unknown };

export type ApiClient = {
  send(method: string, path: string, body?: unknown): Promise<ApiAnswer>;
  /** Bytes behind a download link. Throws when the link does not give them. */
  download(url: string): Promise<Uint8Array>;
  close(): Promise<void>;
};

/** Signs a request in place of the caller; the identity for a service that asks for none. */
export type SignRequest = (request: Request) => Promise<Request>;

export type ApiClientOptions = {
  readonly baseUrl: string;
  readonly sign?: SignRequest | undefined;
  readonly onClose?: (() => Promise<void>) | undefined;
};

const TIMEOUT_MS = 60_000;

export function createApiClient({ baseUrl, sign = async (request) => request, onClose }: ApiClientOptions): ApiClient {
  return {
    send: async (method, path, body) => {
      const content =
        body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const request = await sign(new Request(`${baseUrl}${path}`, { method, redirect: "manual", ...content }));
      const response = await fetch(request, { signal });
      const text = await response.text();
      return { status: response.status, body: parseAnswer(text, response.status) };
    },
    download: async (url) => {
      const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (!response.ok) throw new Fault("ARTIFACT_NOT_FOUND", `the download link answered ${response.status}`);
      return new Uint8Array(await response.arrayBuffer());
    },
    close: async () => onClose?.(),
  };
}

function parseAnswer(text: string, status: number): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Fault(
      "SERVER_UNAVAILABLE",
      `the service answered ${status} with something that is not JSON; is the endpoint right?`,
      {
        cause: error,
      },
    );
  }
}
