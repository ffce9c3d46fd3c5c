import type { FetchLike } from "@modelcontextprotocol/client";
import { tooLarge, type WireTrouble, type WireWatch } from "./wire.ts";

/**
 * `fetch` for a server that nobody vouches for: it reads no more of an answer than was agreed, before anything parses
 * it, and follows no redirect, because the headers that it carries are meant for the configured address alone.
 */

/** The stream on which a server of the older protocol says what nobody asked for. */
export type StreamWatch = {
  onOpen(): void;
  /** Its end, or that there is none; `status` when the server refused to open it. */
  onEnd(status?: number): void;
};

/** Without a watch for it the stream is not opened: a connection for one list has no use for it. */
export function createBoundedFetch(watch: WireWatch, stream?: StreamWatch): FetchLike {
  return async (url, init) => {
    const isStream = init?.method === "GET";
    if (isStream && stream === undefined) return new Response(null, { status: 405 });
    try {
      const response = await fetch(url, { ...init, redirect: "manual" });
      refuseRedirect(response, watch);
      if (!isStream || stream === undefined) return withBoundedBody(response, { watch });
      if (response.ok) stream.onOpen();
      else stream.onEnd(response.status);
      return withBoundedBody(response, { watch, onEnd: response.ok ? () => stream.onEnd() : undefined });
    } catch (error) {
      if (isStream) stream?.onEnd();
      throw error;
    }
  };
}

function refuseRedirect({ status, body }: Response, watch: WireWatch): void {
  if (status < 300 || status > 399) return;
  void body?.cancel().catch(() => undefined);
  const message = `answered with a redirect (HTTP ${status}), which is not followed; name the final URL in its entry`;
  throw toError({ tooLarge: false, message }, watch);
}

function toError(trouble: WireTrouble, watch: WireWatch): Error {
  watch.onTrouble(trouble);
  return new Error(trouble.message);
}

type BodyOptions = { readonly watch: WireWatch; readonly onEnd?: (() => void) | undefined };

function withBoundedBody(response: Response, options: BodyOptions): Response {
  if (response.body === null) {
    options.onEnd?.();
    return response;
  }
  const { status, statusText, headers } = response;
  return new Response(toBounded(response.body, options), { status, statusText, headers });
}

/** Counted after decompression: a thousandth of the bytes may have travelled. */
function toBounded(body: ReadableStream<Uint8Array>, { watch, onEnd }: BodyOptions): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let total = 0;
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
          onEnd?.();
          return;
        }
        total += value.byteLength;
        watch.onBytes(value.byteLength);
        const maxBytes = watch.maxBytes();
        if (total > maxBytes) throw toError(tooLarge(maxBytes), watch);
        controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        onEnd?.();
        await reader.cancel(error).catch(() => undefined);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
