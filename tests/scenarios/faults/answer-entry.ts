/** An answer thread that fails when it is asked for certain names. */
import { parentPort, workerData } from "node:worker_threads";
import { type Answerer, type AnswererOptions, createAnswerer } from "../../../src/answer/answerer.ts";
import type { SharedImage } from "../../../src/image/shared.ts";
import { runUdpThread } from "../../../src/listen/udp-thread.ts";

/** First labels: one kills the thread at the end of the batch, one makes the answer itself throw. */
const KILL = "kill-the-thread";
const THROW = "throw-an-error";
const QUESTION_AT = 12;

function firstLabel(bytes: Uint8Array, offset: number): string {
  const at = offset + QUESTION_AT;
  return Buffer.from(bytes.subarray(at + 1, at + 1 + (bytes[at] ?? 0))).toString("latin1");
}

function createFaultyAnswerer(shared: SharedImage, options: AnswererOptions): Answerer {
  const answerer = createAnswerer(shared, options);
  let isDoomed = false;
  return {
    enter: answerer.enter,
    leave: () => {
      if (isDoomed) throw new Error("planted: the thread dies");
      answerer.leave();
    },
    answer: (bytes, offset, ...rest) => {
      const label = firstLabel(bytes, offset);
      if (label === KILL) isDoomed = true;
      if (label === THROW) throw new Error("planted: the answer fails");
      return answerer.answer(bytes, offset, ...rest);
    },
  };
}

if (parentPort !== null) runUdpThread(workerData, parentPort, createFaultyAnswerer);
