/**
 * Streams that have their whole answer while their client still sends a body. It may stop by itself, or come to its end; one
 * that does neither is asked to stop by a reset with NO_ERROR (RFC 9113 section 8.1). Not at once: there are clients, curl
 * among them, that forget an answer when a reset comes before they have looked at it.
 */

export type UnheardStreams = {
  /** The answer goes out. */
  readonly begin: (stream: number) => void;
  /** All of the answer is handed to the system. */
  readonly sent: (stream: number) => void;
  /** The body has come to its end, or the client has reset the stream; whether it was one of these. */
  readonly end: (stream: number) => boolean;
  /** Resets those whose time is over at `nowMs`. */
  readonly sweep: (nowMs: number) => void;
  /** Resets all that have their answer; whether there were any. */
  readonly resetAll: () => boolean;
};

export type UnheardOptions = {
  readonly reset: (stream: number) => void;
  /** From the end of the answer to the reset. */
  readonly waitMs: number;
  /** Above so many the oldest is reset at once. */
  readonly max: number;
  /** Milliseconds of a clock that never runs backwards. */
  readonly now: () => number;
};

export function createUnheardStreams({ reset, waitMs, max, now }: UnheardOptions): UnheardStreams {
  /** When each is reset, in the order of that; those whose answer is still under way are not among them. */
  const due = new Map<number, number>();
  const answering = new Set<number>();
  const resetThose = (isOver: (dueMs: number) => boolean) => {
    for (const [stream, dueMs] of due) {
      if (!isOver(dueMs)) return;
      due.delete(stream);
      reset(stream);
    }
  };
  return {
    begin: (stream) => answering.add(stream),
    sent: (stream) => {
      if (!answering.delete(stream)) return;
      due.set(stream, now() + waitMs);
      if (due.size > max) resetThose(() => due.size > max);
    },
    end: (stream) => due.delete(stream) || answering.delete(stream),
    sweep: (nowMs) => resetThose((dueMs) => dueMs <= nowMs),
    resetAll: () => {
      const isAny = due.size > 0;
      resetThose(() => true);
      return isAny;
    },
  };
}
