/** The way of answers back: on the socket that the query came by, or by the thread that took it. */
import type { MessagePort } from "node:worker_threads";
import { HANDOVER_KIND } from "../image/handover.ts";
import { type AnswerFrames, createAnswerFrames } from "../listen/answer-frames.ts";
import { recordControl, recordKind, recordName, recordToken } from "../listen/handover-record.ts";
import type { ReplySender } from "../listen/linux/reply.ts";

export type Replies = {
  /** Takes the answer to a record of a thread along; it is copied. One of no bytes says that there is none. */
  readonly add: (thread: number, record: Uint8Array, answer: Uint8Array) => void;
  /** Sends what was added; the number of answers that could not be sent since the last time. */
  readonly send: () => number;
  /** The way to a thread that has begun; the one to its predecessor is closed. */
  readonly connect: (thread: number, port: MessagePort) => void;
  readonly close: () => void;
};

type Way = { readonly port: MessagePort; readonly frames: AnswerFrames };

/** `descriptorOf` gives the descriptor of a thread's socket; without a sender, every thread sends its answers itself. */
export function createReplies(
  sender: ReplySender | undefined,
  descriptorOf: (thread: number, socket: number) => number | undefined,
): Replies {
  const ways = new Map<number, Way>();
  let dropped = 0;
  return {
    add: (thread, record, answer) => {
      if (recordKind(record) === HANDOVER_KIND.MESSAGE)
        return ways.get(thread)?.frames.add(recordToken(record), answer);
      const descriptor = descriptorOf(thread, recordToken(record));
      if (answer.length === 0) return;
      if (sender === undefined || descriptor === undefined) dropped += 1;
      else dropped += sender.add(descriptor, recordName(record), recordControl(record), answer);
    },
    send: () => {
      const total = dropped + (sender?.send() ?? 0);
      dropped = 0;
      for (const { port, frames } of ways.values()) {
        const taken = frames.take();
        if (taken !== undefined) port.postMessage(taken, [taken.buffer]);
      }
      return total;
    },
    connect: (thread, port) => {
      ways.get(thread)?.port.close();
      ways.set(thread, { port, frames: createAnswerFrames() });
    },
    close: () => {
      for (const { port } of ways.values()) port.close();
      ways.clear();
    },
  };
}
