/**
 * The life of a UDP query in an answer thread: taken from the kernel with up to UDP_BATCH others, answered where it
 * lies, handed back to the kernel. No event loop runs here and nothing is allocated in the steady state.
 */
import { type Answerer, TAKEN } from "../answer/answerer.ts";
import { READ_AHEAD_MAX } from "../answer/read-ahead.ts";
import { EDE } from "../dns/codes.ts";
import { COUNTER, observeLatency, TRANSPORT } from "../image/counters.ts";
import { CONTROL } from "../image/shared.ts";
import type { Handover } from "./handover.ts";
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
  /** Takes the queries that have to be resolved. */
  readonly handover: Handover;
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
      if (first !== undefined) serveBatch(loop, first, 0, true);
      continue;
    }
    if (pollSet.wait(UDP_WAIT_MS) <= 0) continue;
    for (let index = 0; index < batches.length; index++) {
      if (pollSet.isReadable(index)) serveBatch(loop, batches[index]!, index, false);
    }
  }
  for (const [index, batch] of batches.entries()) {
    for (let rounds = 0; rounds < UDP_DRAIN_BATCHES && serveBatch(loop, batch, index, false) > 0; rounds++);
  }
}

/** Answers one batch of the thread's socket number `socket`; the number of datagrams it had. */
function serveBatch(loop: BatchLoop, batch: Batch, socket: number, wait: boolean): number {
  const { answerer, counters, stopwatch, handover } = loop;
  const count = batch.receive(wait);
  if (count === 0) return 0;
  stopwatch.start();
  let pushed = 0;
  let resolving = 0;
  answerer.enter();
  for (let from = 0; from < count; from += READ_AHEAD_MAX) {
    const end = Math.min(from + READ_AHEAD_MAX, count);
    readAhead(loop, batch, from, end);
    for (let index = from; index < end; index++) {
      const outcome = answerOne(loop, batch, socket, index);
      if (outcome !== ANSWERED) pushed += 1;
      if (outcome === HANDED_OVER) resolving += 1;
    }
  }
  answerer.leave();
  if (pushed > 0) handover.wake();
  const dropped = batch.send();
  if (dropped > 0) counters[COUNTER.DROPPED]! += dropped;
  counters[COUNTER.BATCHES]! += 1;
  // Of what is resolved the other thread knows when it is answered.
  observeLatency(counters, stopwatch.elapsedUs(), count - resolving);
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

/** What became of a query: it needs no other thread, is answered by one, or its answer is to be refreshed by one. */
const ANSWERED = 0;
const HANDED_OVER = 1;
const REFRESHED = 2;

function answerOne(loop: BatchLoop, batch: Batch, socket: number, index: number): number {
  const { answerer } = loop;
  const { bytes } = batch;
  const at = batch.slotAt(index);
  const received = batch.lengthOf(index);
  const address = batch.addressAt(index);
  const addressLength = batch.addressLengthOf(index);
  const { UDP } = TRANSPORT;
  try {
    let length = answerer.answer(bytes, at, received, UDP_SLOT_BYTES, bytes, address, addressLength, UDP);
    if (length === TAKEN) {
      if (handOver(loop, batch, socket, index)) return HANDED_OVER;
      loop.counters[COUNTER.HANDOVER_FULL]! += 1;
      length = answerer.answerNow(bytes, at, received, UDP_SLOT_BYTES, bytes, address, addressLength, UDP, EDE.OTHER);
    }
    if (length > 0) batch.reply(index, length);
    if (answerer.refresh === 0) return ANSWERED;
    loop.handover.pushRefresh(answerer.refresh);
    return REFRESHED;
  } catch (thrown) {
    // Whatever one query provokes ends with that query: the thread and its batch go on.
    loop.counters[COUNTER.FAILED]! += 1;
    loop.onFailure(bytes.slice(at, at + received), thrown);
    return ANSWERED;
  }
}

/** False: there is no room for it. */
function handOver({ answerer, handover }: BatchLoop, batch: Batch, socket: number, index: number): boolean {
  if (!handover.admits(answerer.need.route)) return false;
  return handover.pushDatagram(
    batch.bytes,
    socket,
    batch.addressAt(index),
    batch.addressLengthOf(index),
    batch.nameAt(index),
    batch.nameBytes,
    batch.controlAt(index),
    batch.controlLengthOf(index),
    batch.slotAt(index),
    batch.lengthOf(index),
  );
}
