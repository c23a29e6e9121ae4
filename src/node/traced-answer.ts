/**
 * Answers that are told instead of sent: an answerer like those of the listeners, over the same image, which tells its way and
 * leaves no trace in it. Whoever answers the next query has the same choices to make.
 */
import { type AnswererOptions, createAnswerer } from "../answer/answerer.ts";
import type { TraceEvent } from "../answer/trace.ts";
import { EDE } from "../dns/codes.ts";
import { MESSAGE_BYTES_MAX } from "../dns/message.ts";
import { type Transport, threadCounters } from "../image/counters.ts";
import type { SharedImage } from "../image/shared.ts";

export type TracedAnswer = {
  readonly bytes: Uint8Array;
  /** Of the answer as it came out, where it was made more than once. */
  readonly events: readonly TraceEvent[];
  /** A zone was in the middle of a change, so that the answer was made again. */
  readonly isRepeated: boolean;
};

/** Nobody is asked for an explanation: what the cache lacks is answered as where no upstream answers. */
const LACK_ERROR = EDE.OTHER;

/** Answers a query of a client, 4 or 16 bytes of address. */
export type AnswerTracer = (query: Uint8Array, client: Uint8Array, transport: Transport) => TracedAnswer;

export type AnswerTracerOptions = Pick<AnswererOptions, "thread" | "maxUdpSize" | "tcpIdleSeconds" | "chance">;

export function createAnswerTracer(shared: SharedImage, options: AnswerTracerOptions): AnswerTracer {
  let events: TraceEvent[] = [];
  let isRepeated = false;
  const answerer = createAnswerer(shared, {
    ...options,
    nodeId: undefined,
    isFrozen: true,
    forwards: true,
    trace: (event) => {
      if (event.kind === "again") {
        isRepeated = true;
        // The client's region is found out once a query.
        events = events.filter(({ kind }) => kind === "client");
      } else events.push(event);
    },
  });
  const counters = threadCounters(shared, options.thread);
  const room = new Uint8Array(MESSAGE_BYTES_MAX);
  return (query, client, transport) => {
    events = [];
    isRepeated = false;
    room.set(query);
    answerer.enter();
    try {
      const length = answerer.answerNow(
        room,
        0,
        query.length,
        room.length,
        client,
        0,
        client.length,
        transport,
        LACK_ERROR,
      );
      return { bytes: room.slice(0, length), events, isRepeated };
    } finally {
      answerer.leave();
      // These are no queries of clients.
      counters.fill(0);
    }
  };
}
