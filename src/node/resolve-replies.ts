/** The way of answers back: on the socket that the query came by, or by the thread that took it. */
import type { MessagePort } from "node:worker_threads";
import { HANDOVER_KIND } from "../image/handover.ts";
import { type AnswerFrames, createAnswerFrames, type FromSender, type Part } from "../listen/answer-frames.ts";
import { recordControl, recordKind, recordName, recordToken } from "../listen/handover-record.ts";
import type { ReplySender } from "../listen/linux/reply.ts";
import { ANSWER_BYTES_UNDER_WAY_MAX } from "./limits.ts";

export type Replies = {
  /** Takes the answer to a record of a thread along; it is copied. One of no bytes says that there is none. */
  readonly add: (thread: number, record: Uint8Array, answer: Uint8Array) => void;
  /** One of several messages that answer a record whose thread sends them; copied too. */
  readonly addPart: (thread: number, record: Uint8Array, message: Uint8Array, part: Part) => void;
  /** Whether a thread that sends answers itself has so many bytes of them to come that it had better not be given more. */
  readonly isFull: (thread: number) => boolean;
  /** Sends what was added; the number of answers that could not be sent since the last time. */
  readonly send: () => number;
  /** The way to a thread that has begun; the one to its predecessor is closed. */
  readonly connect: (thread: number, port: MessagePort) => void;
  readonly close: () => void;
};

type Way = {
  /** Undefined: the thread has handed something over, and the way to it is still to come. */
  readonly port: MessagePort | undefined;
  readonly frames: AnswerFrames;
  /** Bytes that were sent and that the thread has not said it has taken. */
  underWay: number;
};

/** Whoever sends answers of several messages. */
export type FlowEvents = {
  readonly onTaken: (thread: number, token: number, bytes: number) => void;
  readonly onGone: (thread: number, token: number) => void;
  /** Nothing that was sent by way of the thread's predecessor arrives. */
  readonly onBegun: (thread: number) => void;
};

const NO_FLOWS: FlowEvents = { onTaken: () => {}, onGone: () => {}, onBegun: () => {} };

/**
 * `descriptorOf` gives the descriptor of a thread's socket; without a sender, every thread sends its answers itself.
 * `onRelief` is called when a thread that had too much to come has taken some of it.
 */
export function createReplies(
  sender: ReplySender | undefined,
  descriptorOf: (thread: number, socket: number) => number | undefined,
  onRelief: () => void,
  flows = NO_FLOWS,
): Replies {
  const ways = new Map<number, Way>();
  const isFull = (way: Way | undefined) =>
    way !== undefined && way.underWay + way.frames.bytes() >= ANSWER_BYTES_UNDER_WAY_MAX;
  let dropped = 0;
  const framesTo = (thread: number): AnswerFrames => {
    const known = ways.get(thread);
    if (known !== undefined) return known.frames;
    const way: Way = { port: undefined, frames: createAnswerFrames(), underWay: 0 };
    ways.set(thread, way);
    return way.frames;
  };
  return {
    add: (thread, record, answer) => {
      if (recordKind(record) === HANDOVER_KIND.MESSAGE) return framesTo(thread).add(recordToken(record), answer);
      const descriptor = descriptorOf(thread, recordToken(record));
      if (answer.length === 0) return;
      if (sender === undefined || descriptor === undefined) dropped += 1;
      else dropped += sender.add(descriptor, recordName(record), recordControl(record), answer);
    },
    addPart: (thread, record, message, part) => framesTo(thread).add(recordToken(record), message, part),
    isFull: (thread) => isFull(ways.get(thread)),
    send: () => {
      const total = dropped + (sender?.send() ?? 0);
      dropped = 0;
      for (const way of ways.values()) {
        if (way.port === undefined) continue;
        const taken = way.frames.take();
        if (taken === undefined) continue;
        way.underWay += taken.length;
        way.port.postMessage(taken, [taken.buffer]);
      }
      return total;
    },
    connect: (thread, port) => {
      const before = ways.get(thread);
      before?.port?.close();
      const isFirst = before !== undefined && before.port === undefined;
      const way: Way = { port, frames: isFirst ? before.frames : createAnswerFrames(), underWay: 0 };
      ways.set(thread, way);
      port.on("message", (message: FromSender) => {
        if (typeof message !== "number") {
          if (message.kind === "taken") flows.onTaken(thread, message.token, message.bytes);
          else flows.onGone(thread, message.token);
          return;
        }
        const wasFull = isFull(way);
        way.underWay -= message;
        if (wasFull && !isFull(way)) onRelief();
      });
      if (!isFirst) flows.onBegun(thread);
      onRelief();
    },
    close: () => {
      for (const { port } of ways.values()) port?.close();
      ways.clear();
    },
  };
}
