/**
 * Answers that read all of a store and hold what they found until the peer has taken it: some at once, and of one peer fewer, so
 * that who asks without an end, or takes nothing of what it asked for, fills no memory and keeps nobody out for long.
 */
import type { Timers } from "../cluster/transport.ts";

export const LONG_ANSWERS_AT_ONCE = 4;
/** Under way or waiting: one comparison, and one that its peer has given up. */
export const LONG_ANSWERS_OF_PEER = 2;
/** A place is for so long at most; the answer goes on without. */
export const LONG_ANSWER_PLACE_MS = 60_000;

export type LongAnswers = {
  /** The parts of `make`, which begins when there is a place. Throws where the peer has asked too often. */
  readonly inTurn: (nodeId: string, make: () => AsyncGenerator<unknown>) => AsyncGenerator<unknown>;
};

export function createLongAnswers(timers: Timers): LongAnswers {
  const ofPeer = new Map<string, number>();
  const waiting: (() => void)[] = [];
  let taken = 0;
  const free = () => {
    taken--;
    waiting.shift()?.();
  };
  const place = async (): Promise<() => void> => {
    while (taken >= LONG_ANSWERS_AT_ONCE) await new Promise<void>((resolve) => void waiting.push(resolve));
    taken++;
    let isFree = false;
    const give = () => {
      if (isFree) return;
      isFree = true;
      cancel();
      free();
    };
    const cancel = timers.after(LONG_ANSWER_PLACE_MS, give);
    return give;
  };
  const count = (nodeId: string, by: number) => {
    const left = (ofPeer.get(nodeId) ?? 0) + by;
    if (left > 0) ofPeer.set(nodeId, left);
    else ofPeer.delete(nodeId);
  };
  return {
    inTurn: async function* (nodeId, make) {
      if ((ofPeer.get(nodeId) ?? 0) >= LONG_ANSWERS_OF_PEER) throw new Error("too many long questions at once");
      count(nodeId, 1);
      try {
        const give = await place();
        try {
          yield* make();
        } finally {
          give();
        }
      } finally {
        count(nodeId, -1);
      }
    },
  };
}
