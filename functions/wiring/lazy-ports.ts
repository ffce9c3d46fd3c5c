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
  let called = false;
  const opened = once(async () => (await loaded()).openSession());
  return {
    call: async (call, limits) => {
      called = true;
      return (await opened()).call(call, limits);
    },
    close: async () => {
      if (called) await (await opened()).close();
    },
  };
}

function once<T>(act: () => Promise<T>): () => Promise<T> {
  let acting: Promise<T> | undefined;
  return () => {
    acting ??= act();
    return acting;
  };
}
