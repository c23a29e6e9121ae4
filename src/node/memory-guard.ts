/**
 * A control thread that runs out of memory is replaced, and DNS answers on: but not when that happens inside the callback
 * of a transaction. lmdb (3.5) then reads a result that its callback never gave, and the process dies of it. What was
 * acknowledged is on the disk and the transaction is not; still, the heap should run out anywhere else. So a transaction
 * begins only where enough is left for it.
 */
import { getHeapStatistics } from "node:v8";
import { Refusal } from "../model/refusal.ts";
import type { NodeStore } from "../store/open-store.ts";
import { WRITE_HEAP_RESERVE_MB } from "./limits.ts";

const RESERVE_BYTES = WRITE_HEAP_RESERVE_MB * 2 ** 20;

function bytesLeft(): number {
  const { heap_size_limit, used_heap_size } = getHeapStatistics();
  return heap_size_limit - used_heap_size;
}

/** The same store, whose writes are refused with `not_ready` while the thread's heap is nearly full. */
export function withHeapLeft(store: NodeStore, leftBytes: () => number = bytesLeft): NodeStore {
  const requireHeap = () => {
    if (leftBytes() < RESERVE_BYTES) {
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
