/** Starts threads that read an image while a test changes it. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { SharedImage } from "../../src/image/shared.ts";

/** Words that readers and test share. */
export const PROGRESS = { STOP: 0, LOOKUPS: 1, RRSETS_READ: 2 } as const;

export type Readers = {
  readonly progress: Int32Array;
  /** Ends the readers and returns what they found wrong. */
  readonly stop: () => Promise<readonly string[]>;
};

/** `entry` is a module that gets `{ shared, thread, progress }` and posts a text for each fault. */
export function startReaders(shared: SharedImage, entry: URL, count: number): Readers {
  const buffer = new SharedArrayBuffer(16);
  const progress = new Int32Array(buffer);
  const faults: string[] = [];
  const exits = Array.from({ length: count }, (_, index) => {
    const worker = new Worker(entry, { workerData: { shared, thread: index + 1, progress: buffer } });
    worker.on("message", (fault: string) => faults.push(fault));
    worker.on("error", (error: Error) => faults.push(error.stack ?? error.message));
    return once(worker, "exit").catch((error: Error) => faults.push(error.message));
  });
  return {
    progress,
    async stop() {
      Atomics.store(progress, PROGRESS.STOP, 1);
      await Promise.all(exits);
      return faults;
    },
  };
}
