/**
 * What keeps the control thread from being torn down for want of memory. DNS would answer on, and a replacement start: but
 * a thread that ends in the middle of a transaction leaves lmdb (3.5) waiting for ever for a callback, or reading a result
 * that the callback never gave, and the process dies of it. What was acknowledged is on the disk all the same. So the
 * thread looks at its heap, ends in order before it is full, and begins no transaction while it is nearly so.
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { resourceLimits } from "node:worker_threads";
import { Refusal } from "../model/refusal.ts";
import type { NodeStore } from "../store/open-store.ts";
import { HEAP_CHECK_MS, HEAP_COLLECT_MS, HEAP_FULL_SHARE, HEAP_SUSPECT_SHARE, HEAP_WRITES_SHARE } from "./limits.ts";

/** V8's own limit counts the young generation on top; it is the old one that ends the thread. */
function usedShare(): number {
  const { heap_size_limit, used_heap_size } = getHeapStatistics();
  const { maxOldGenerationSizeMb } = resourceLimits;
  return used_heap_size / (maxOldGenerationSizeMb === undefined ? heap_size_limit : maxOldGenerationSizeMb * 2 ** 20);
}

/** Calls `onFull` when the living part of this thread's heap is nearly all that it may have. */
export function watchHeap(onFull: () => void): Disposable {
  let collectedAt = Number.NEGATIVE_INFINITY;
  const timer = setInterval(() => {
    if (usedShare() < HEAP_SUSPECT_SHARE || performance.now() - collectedAt < HEAP_COLLECT_MS) return;
    collectGarbage();
    collectedAt = performance.now();
    if (usedShare() > HEAP_FULL_SHARE) onFull();
  }, HEAP_CHECK_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Garbage counts as used until it is collected, and V8 lets it lie while there is room. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
}

/** The same store, whose writes are refused with `not_ready` while the thread's heap is nearly full. */
export function withHeapLeft(store: NodeStore, share: () => number = usedShare): NodeStore {
  const requireHeap = () => {
    if (share() > HEAP_WRITES_SHARE) {
      throw new Refusal("not_ready", "the node is short of memory", [], { retry_after: 1 });
    }
  };
  return {
    ...store,
    write: async (work) => {
      requireHeap();
      return await store.write(work);
    },
    writeInSlices: async (work) => {
      requireHeap();
      return await store.writeInSlices(work);
    },
    rehearse: async (work) => {
      requireHeap();
      return await store.rehearse(work);
    },
  };
}
