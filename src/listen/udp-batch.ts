/**
 * The life of a UDP query in an answer thread: taken from the kernel with up to UDP_BATCH others, answered where it
 * lies, handed back to the kernel. No event loop runs here and nothing is allocated in the steady state.
 */
import type { Answerer } from "../answer/answerer.ts";
import { READ_AHEAD_MAX } from "../answer/read-ahead.ts";
import { COUNTER, observeLatency, TRANSPORT } from "../image/counters.ts";
import { CONTROL } from "../image/shared.ts";
import { UDP_DRAIN_BATCHES, UDP_SLOT_BYTES, UDP_WAIT_MS } from "./limits.ts";
import type { Batch } from "./linux/batch.ts";
import type { PollSet, Stopwatch } from "./linux/waiting.ts";

export type BatchLoop = {
  /** One for each socket of the thread. */
  readonly batches: readonly Batch[];
  /** Over the same sockets in the same order; needed when there are several. */
  readonly pollSet: PollSet;
  readonly stopwatch: Stopwatch;
  readonly answerer: Answerer;
  /** The thread's own counters. */
  readonly counters: Float64Array;
  /** The image's control words; the loop ends when STOP is set. */
  readonly control: Int32Array;
  /** Is given a copy of a query whose answering threw, and what was thrown. */
  readonly onFailure: (query: Uint8Array, thrown: unknown) => void;
};

/** Serves until STOP is set, then what has arrived by then. Throws the system's error when a socket cannot be read any more. */
export function runBatchLoop(loop: BatchLoop): void {
  const { batches, pollSet, control } = loop;
  const [first] = batches;
  while (Atomics.load(control, CONTROL.STOP) === 0) {
    if (batches.length === 1) {
      // A single socket needs one system call to wait and read; polling would add a second one to every batch.
      if (first !== undefined) serveBatch(loop, first, true);
      continue;
    }
    if (pollSet.wait(UDP_WAIT_MS) <= 0) continue;
    for (let index = 0; index < batches.length; index++) {
      if (pollSet.isReadable(index)) serveBatch(loop, batches[index]!, false);
    }
  }
  for (const batch of batches) {
    for (let rounds = 0; rounds < UDP_DRAIN_BATCHES && serveBatch(loop, batch, false) > 0; rounds++);
  }
}

/** Answers one batch; the number of datagrams it had. */
function serveBatch(loop: BatchLoop, batch: Batch, wait: boolean): number {
  const { answerer, counters, stopwatch } = loop;
  const count = batch.receive(wait);
  if (count === 0) return 0;
  stopwatch.start();
  answerer.enter();
  for (let from = 0; from < count; from += READ_AHEAD_MAX) {
    const end = Math.min(from + READ_AHEAD_MAX, count);
    readAhead(loop, batch, from, end);
    for (let index = from; index < end; index++) answerOne(loop, batch, index);
  }
  answerer.leave();
  const dropped = batch.send();
  if (dropped > 0) counters[COUNTER.DROPPED]! += dropped;
  counters[COUNTER.BATCHES]! += 1;
  observeLatency(counters, stopwatch.elapsedUs(), count);
  return count;
}

/** Lets the answerer see several queries at once; a single one gains nothing by that. */
function readAhead({ answerer }: BatchLoop, batch: Batch, from: number, end: number): void {
  if (end - from < 2) return;
  try {
    for (let index = from; index < end; index++) {
      answerer.readAhead(batch.bytes, batch.slotAt(index), batch.lengthOf(index));
    }
    answerer.prefetch();
  } catch {
    // Each query is read again when it is answered, and there the one that provokes this fails by itself.
  }
}

function answerOne(loop: BatchLoop, batch: Batch, index: number): void {
  const { bytes } = batch;
  const at = batch.slotAt(index);
  const received = batch.lengthOf(index);
  try {
    const length = loop.answerer.answer(
      bytes,
      at,
      received,
      UDP_SLOT_BYTES,
      bytes,
      batch.addressAt(index),
      batch.addressLengthOf(index),
      TRANSPORT.UDP,
    );
    if (length > 0) batch.reply(index, length);
  } catch (thrown) {
    // Whatever one query provokes ends with that query: the thread and its batch go on.
    loop.counters[COUNTER.FAILED]! += 1;
    loop.onFailure(bytes.slice(at, at + received), thrown);
  }
}
