import type { ObjectStore } from "../../../functions/contract/ports.ts";

/** A store as a process sees it that is killed: from the given step on, nothing it asks for is done or answered. */

export type DyingStore = { readonly store: ObjectStore; readonly steps: () => number; readonly isDead: () => boolean };

/**
 * `at` counts from 1 over puts, gets, deletes and lists. `done`: the step at which it dies is still done, only its
 * answer is never seen. Every later step is rejected, as is that one.
 */
export function dyingStore(store: ObjectStore, at: number, { done }: { readonly done: boolean }): DyingStore {
  let steps = 0;
  const step = async <T>(act: () => Promise<T>): Promise<T> => {
    steps += 1;
    if (steps === at && done) await act();
    if (steps >= at) throw new Error("killed");
    return act();
  };
  return {
    steps: () => steps,
    isDead: () => steps >= at,
    store: {
      put: (request) => step(() => store.put(request)),
      get: (key, limits) => step(() => store.get(key, limits)),
      getUnless: (etag, key, limits) => step(() => store.getUnless(etag, key, limits)),
      delete: (key) => step(() => store.delete(key)),
      list: (prefix, page) => step(() => store.list(prefix, page)),
      presign: (key, request) => store.presign(key, request),
    },
  };
}
