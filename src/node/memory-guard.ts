/**
 * What lets the control thread end in order before its memory is full: what its clients wait for is answered, and the store
 * is closed. Sudden death it survives too, and nothing acknowledged is lost, but whoever waits for it hears nothing.
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { resourceLimits } from "node:worker_threads";
import { HEAP_CHECK_MS, HEAP_COLLECT_MS, HEAP_FULL_SHARE, HEAP_SUSPECT_SHARE } from "./limits.ts";

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
