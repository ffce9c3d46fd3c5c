import type { Timer } from "../functions/contract/ports.ts";

/** The system's timer. It keeps no process alive: whoever waits for it has something else to wait for. */
export const realTimer: Timer = (act, milliseconds) => {
  const pending = setTimeout(act, milliseconds);
  pending.unref();
  return { cancel: () => clearTimeout(pending) };
};
