import type { ObjectStore } from "../functions/contract/ports.ts";

/**
 * A store on this machine answers without ever waiting, and a job that waits for nothing else would keep the process
 * from its timers and its other requests until it has ended. So everybody else has a turn before each request to the
 * store.
 */
export function yieldingStore(store: ObjectStore): ObjectStore {
  const afterTurn =
    <Args extends readonly unknown[], T>(act: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      await new Promise<void>((done) => setImmediate(done));
      return act(...args);
    };
  return {
    put: afterTurn(store.put),
    get: afterTurn(store.get),
    getUnless: afterTurn(store.getUnless),
    delete: afterTurn(store.delete),
    list: afterTurn(store.list),
    presign: (key, request) => store.presign(key, request),
  };
}
