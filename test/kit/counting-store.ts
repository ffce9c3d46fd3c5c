import type { ObjectStore } from "../../functions/contract/ports.ts";

/** Counts what a store is asked for, as S3 bills it: a conditional read is a read, whatever comes of it. */

export type StoreCounts = { put: number; get: number; delete: number; list: number };

export type CountingStore = {
  readonly store: ObjectStore;
  /** Since the last time that this was asked. */
  take(): StoreCounts;
};

export function countingStore(store: ObjectStore): CountingStore {
  let counts = none();
  const count =
    <Args extends readonly unknown[], T>(kind: keyof StoreCounts, act: (...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> => {
      counts[kind] += 1;
      return act(...args);
    };
  return {
    store: {
      ...store,
      put: count("put", store.put),
      get: count("get", store.get),
      getUnless: count("get", store.getUnless),
      delete: count("delete", store.delete),
      list: count("list", store.list),
    },
    take: () => {
      const taken = counts;
      counts = none();
      return taken;
    },
  };
}

function none(): StoreCounts {
  return { put: 0, get: 0, delete: 0, list: 0 };
}
