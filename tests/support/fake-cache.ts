/** A cache as the API sees it, for tests without a thread that resolves. */
import type { CacheState, CacheView } from "../../src/commands/cache.ts";

export type FakeCache = CacheView & {
  /** What it was told to flush: names in wire form, undefined for everything. */
  readonly flushes: { readonly name: Uint8Array | undefined; readonly isSubtree: boolean }[];
  /** Nobody answers from now on. */
  isAway: boolean;
};

const EMPTY: CacheState = {
  entries: 3,
  bytes: 400,
  capacity_bytes: 2 ** 20,
  hits: 5,
  misses: 3,
  stale: 1,
  insertions: 3,
  evictions: 0,
  refreshes: 0,
  flushed: 0,
};

export function fakeCache(): FakeCache {
  const cache: FakeCache = {
    nodeId: "node-1",
    flushes: [],
    isAway: false,
    read: () => Promise.resolve(cache.isAway ? undefined : EMPTY),
    flush: (name, isSubtree) => {
      if (cache.isAway) return Promise.resolve(undefined);
      cache.flushes.push({ name, isSubtree });
      return Promise.resolve(2);
    },
  };
  return cache;
}
