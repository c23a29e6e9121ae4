/** A verdict about a probe that has just lost its slot, on two threads that truly run at the same time. */
import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { Worker } from "node:worker_threads";
import type { ProbeSpec } from "../../src/health/probe.ts";
import {
  HEALTH,
  HEALTH_WORD,
  healthOf,
  openHealthSlots,
  releaseHealthSlot,
  takeHealthSlot,
} from "../../src/image/health.ts";
import { createSharedImage } from "../../src/image/shared.ts";
import type { SlotWriterData } from "./slot-writer-entry.ts";

/** A quiet machine does many more rounds than are enough in this time; one with other work goes on until it has done enough. */
const RUN_MS = 3_000;
/** Without the second look of `writeSlot` the first wrong verdict came within 1,000 rounds, sixteen times of sixteen. */
const ENOUGH_ROUNDS = 2_000;
const DEADLINE_MS = 300_000;
/** So often it is looked for the writer, before it gets this thread's time too. */
const LOOKS = 20_000;
const ENTRY = new URL("./slot-writer-entry.ts", import.meta.url);

test("a verdict that comes too late leaves the next probe of its slot unjudged", async (t) => {
  const shared = createSharedImage(1);
  const slots = openHealthSlots(shared);
  const times = { intervalMs: 5_000, timeoutMs: 1_000, failureThreshold: 3 };
  const spec: ProbeSpec = { key: "1".repeat(16), slot: 1, protocol: "tcp", host: "192.0.2.1", port: 80, ...times };
  const progress = new SharedArrayBuffer(8);
  const counts = new Int32Array(progress);
  const workerData: SlotWriterData = { words: shared.health, spec, progress };
  const worker = new Worker(ENTRY, { workerData });
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const written = (atLeast: number): void => {
    const from = Atomics.load(counts, 0);
    for (let looks = 1; Atomics.load(counts, 0) - from < atLeast; looks++) {
      if (looks % LOOKS === 0) Atomics.wait(pause, 0, 0, 1);
    }
  };
  const verdictAt = HEALTH_WORD.VERDICT + 1;
  try {
    await once(worker, "online");
    let isSeen = false;
    let rounds = 0;
    const beganMs = performance.now();
    const isEnough = () => isSeen && rounds >= ENOUGH_ROUNDS && performance.now() - beganMs >= RUN_MS;
    for (; !isEnough(); rounds++) {
      assert.ok(performance.now() - beganMs < DEADLINE_MS, `${rounds} rounds, ${isSeen ? "a" : "no"} verdict seen`);
      assert.equal(takeHealthSlot(slots, spec.key), 1);
      if (rounds % 64 === 0) {
        written(3);
        isSeen ||= healthOf(Atomics.load(slots.words, verdictAt)) === HEALTH.UNHEALTHY;
      } else for (let left = rounds % 61; left > 0; left--) Atomics.load(counts, 0);
      releaseHealthSlot(slots, spec.key);
      const next = "2".repeat(16);
      assert.equal(takeHealthSlot(slots, next), 1);
      // The write that was under way has ended, and another one has looked whose slot it is.
      written(3);
      assert.equal(Atomics.load(slots.words, verdictAt), HEALTH.UNKNOWN, `round ${rounds}`);
      releaseHealthSlot(slots, next);
    }
    t.diagnostic(`${rounds} rounds`);
  } finally {
    Atomics.store(counts, 1, 1);
    await once(worker, "exit");
  }
});
