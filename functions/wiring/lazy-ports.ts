import type { EventQueue, ToolSession, ToolSource } from "../contract/ports.ts";

/** Adapters that are loaded at their first use, since each would cost every cold start what few requests need. */

export function createLazyEventQueue(load: () => Promise<EventQueue>): EventQueue {
  const loaded = once(load);
  return { send: async (message) => (await loaded()).send(message) };
}

export function createLazyToolSource(load: () => Promise<ToolSource>): ToolSource {
  const loaded = once(load);
  return {
    list: async (server, limits) => (await loaded()).list(server, limits),
    openSession: () => openLazily(loaded),
  };
}

/** Closing a session that nobody called through loads nothing. */
function openLazily(loaded: () => Promise<ToolSource>): ToolSession {
  const open = once(async () => (await loaded()).openSession());
  let opening: Promise<ToolSession> | undefined;
  let closed = false;
  return {
    call: async (call, limits) => {
      if (closed) throw new Error("the session is closed");
      opening = open();
      return (await opening).call(call, limits);
    },
    close: async () => {
      closed = true;
      const session = await opening?.catch(() => undefined);
      await session?.close();
    },
  };
}

/** A rejection is for those who waited for it: the next use tries again, since what failed may have been the moment. */
function once<T>(act: () => Promise<T>): () => Promise<T> {
  let acting: Promise<T> | undefined;
  return () => {
    if (acting !== undefined) return acting;
    const begun = act();
    acting = begun;
    begun.catch(() => {
      acting = undefined;
    });
    return begun;
  };
}
