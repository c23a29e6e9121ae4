/** An answer thread that fails, or tells of its heap, when it is asked for certain names. */
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parentPort, workerData } from "node:worker_threads";
import { type Answerer, type AnswererOptions, createAnswerer } from "../../../src/answer/answerer.ts";
import type { SharedImage } from "../../../src/image/shared.ts";
import { runUdpThread } from "../../../src/listen/udp-thread.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** First labels: one kills the thread at the end of the batch, one makes the answer itself throw, one logs the heap. */
const KILL = "kill-the-thread";
const THROW = "throw-an-error";
const TELL = "tell-the-heap";
const QUESTION_AT = 12;

/** The first label where it may be one of ours; the others cost the thread no memory. */
function firstLabel(bytes: Uint8Array, offset: number): string {
  const at = offset + QUESTION_AT;
  const length = bytes[at] ?? 0;
  const isOurs = length === KILL.length || length === THROW.length || length === TELL.length;
  return isOurs ? Buffer.from(bytes.subarray(at + 1, at + 1 + length)).toString("latin1") : "";
}

/** The heap's size, garbage included, and what is left of it without. */
function tellHeap(): void {
  const used = getHeapStatistics().used_heap_size;
  collectGarbage();
  const message = `heap ${used} ${getHeapStatistics().used_heap_size}`;
  parentPort?.postMessage({ kind: "log", line: { level: "info", message } });
}

function createFaultyAnswerer(shared: SharedImage, options: AnswererOptions): Answerer {
  const answerer = createAnswerer(shared, options);
  let isDoomed = false;
  return {
    ...answerer,
    leave: () => {
      if (isDoomed) throw new Error("planted: the thread dies");
      answerer.leave();
    },
    answer: (bytes, offset, length, room, address, addressOffset, addressLength, transport) => {
      const label = firstLabel(bytes, offset);
      if (label === KILL) isDoomed = true;
      if (label === TELL) tellHeap();
      if (label === THROW) throw new Error("planted: the answer fails");
      return answerer.answer(bytes, offset, length, room, address, addressOffset, addressLength, transport);
    },
  };
}

if (parentPort !== null) runUdpThread(workerData, parentPort, createFaultyAnswerer);
