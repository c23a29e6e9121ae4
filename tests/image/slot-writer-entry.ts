/** Writes the verdicts of one probe again and again, whoever has its slot by now; see slot-race.test.ts. */
import { workerData } from "node:worker_threads";
import type { ProbeSpec } from "../../src/health/probe.ts";
import { writeSlot } from "../../src/health/slot-words.ts";

export type SlotWriterData = {
  readonly words: SharedArrayBuffer;
  readonly spec: ProbeSpec;
  /** [0]: writes that have ended. [1]: not 0 to end. */
  readonly progress: SharedArrayBuffer;
};

const { words, spec, progress }: SlotWriterData = workerData;
const health = new Int32Array(words);
const counts = new Int32Array(progress);
while (Atomics.load(counts, 1) === 0) {
  writeSlot(health, spec, "unhealthy", 1);
  Atomics.add(counts, 0, 1);
}
